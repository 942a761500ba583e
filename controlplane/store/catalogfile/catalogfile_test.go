package catalogfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
	"github.com/felixd/felixd/controlplane/store/storetest"
	"github.com/felixd/felixd/storage/vfs"
)

func options(files vfs.FS) Options {
	return Options{FS: files, Store: store.MemoryOptions{Epoch: "e1", Capabilities: store.Capabilities{Durable: true}}}
}

func open(t *testing.T, files vfs.FS) *store.Memory {
	t.Helper()
	m, err := Open(t.Context(), options(files))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// everything is what a store holds, for comparison.
func everything(t *testing.T, m *store.Memory) store.Catalog {
	t.Helper()
	c, err := m.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A family without records is one thing, however it came to be empty.
	c.Tenants, c.Namespaces = append([]model.Tenant(nil), c.Tenants...), append([]model.Namespace(nil), c.Namespaces...)
	c.Streams, c.Caches = append([]model.Stream(nil), c.Streams...), append([]model.Cache(nil), c.Caches...)
	return c
}

// fill makes a tenant, a namespace, a durable stream with a log, a cache with one, and a cache in memory: seven writes.
func fill(t *testing.T, m store.Store) model.Stream {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(m.CreateTenant(ctx, model.Tenant{TenantID: "t", DisplayName: "T"}))
	must(m.CreateNamespace(ctx, model.Namespace{TenantID: "t", Namespace: "n", DisplayName: "N"}))
	s := model.Stream{TenantID: "t", Namespace: "n", Stream: "orders", Incarnation: 77, Kind: model.StreamKindQueue, Shards: 2, ReplicationFactor: 1,
		Consistency: model.ConsistencyLeader, Delivery: model.DeliveryAtMostOnce, Durable: true, Compress: true, Region: "eu",
		Routing: model.RoutingJumpHash, Retention: model.Retention{MaxAgeSeconds: 60, MaxSizeBytes: model.RetentionBytesMax}}
	_, _, err := m.CreateStream(ctx, s)
	must(err)
	s, err = m.SetLogs(ctx, s.Key(), 77, []model.ShardLog{{Shard: 1, Log: model.LogID{0xff, 0, '"', 1}}})
	must(err)
	_, _, err = m.CreateCache(ctx, model.Cache{TenantID: "t", Namespace: "n", Cache: "users", Incarnation: 78, DisplayName: "<&>\u2028", Shards: 1,
		ReplicationFactor: 1, Consistency: model.ConsistencyQuorum})
	must(err)
	_, err = m.SetCacheLogs(ctx, model.ResourceName{Tenant: "t", Namespace: "n", Name: "users"}, 78, []model.ShardLog{{Log: model.LogID{7, 15: 0xfe}}})
	must(err)
	_, _, err = m.CreateCache(ctx, model.Cache{TenantID: "t", Namespace: "n", Cache: "volatile", Incarnation: 79, Shards: 1,
		ReplicationFactor: 1, Consistency: model.ConsistencyLeader, InMemory: true})
	must(err)
	return s
}

// mission 302: the store that is kept in a file passes the contract of all stores.
func TestAFileKeepsTheContract(t *testing.T) {
	storetest.Run(t, func() store.Store { return open(t, vfs.NewMem()) })
}

func TestARestartFindsEverythingAndFeedsGoOn(t *testing.T) {
	disk := vfs.NewMem()
	first := open(t, disk)
	s := fill(t, first)
	want := everything(t, first)

	second := open(t, disk.CrashHard())
	if got := everything(t, second); !reflect.DeepEqual(got, want) {
		t.Fatalf("restarted with\n%+v\nwant\n%+v", got, want)
	}
	if want.Epoch != "e1" || want.Seq != 7 {
		t.Fatalf("epoch %q, %d writes", want.Epoch, want.Seq)
	}
	page, err := second.Changes(t.Context(), model.KindStreams, 7, 10)
	if err != nil || len(page.Items) != 0 || page.Seq != 7 || page.Epoch != "e1" {
		t.Fatalf("a reader that knew everything: %+v, %v", page, err)
	}
	if _, err := second.Changes(t.Context(), model.KindStreams, 6, 10); !errors.Is(err, store.ErrCompacted) {
		t.Fatalf("a reader that was behind: %v", err)
	}
	if err := second.DeleteStream(t.Context(), s.Key()); err != nil {
		t.Fatal(err)
	}
	page, err = second.Changes(t.Context(), model.KindStreams, 7, 10)
	if err != nil || len(page.Items) != 1 || page.Items[0].Seq != 8 || page.Items[0].Record != model.Record(s) {
		t.Fatalf("the first write after the restart: %+v, %v", page, err)
	}
	if disk.OpenFiles() != 0 {
		t.Fatalf("%d files are open", disk.OpenFiles())
	}
}

func TestSeedFillsANewCatalogOnly(t *testing.T) {
	disk, seeded := vfs.NewMem(), 0
	o := options(disk)
	o.Seed = func(ctx context.Context, s store.Store) error {
		seeded++
		return s.CreateTenant(ctx, model.Tenant{TenantID: "seed", DisplayName: "Seed"})
	}
	for range 2 {
		m, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if seeded == 1 && len(everything(t, m).Tenants) == 1 {
			if err := m.DeleteTenant(t.Context(), "seed"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m := open(t, disk); seeded != 1 || len(everything(t, m).Tenants) != 0 {
		t.Fatalf("seeded %d times, and a restart brings back what was deleted: %+v", seeded, everything(t, m))
	}
}

func TestASeedThatFailsLeavesNoFile(t *testing.T) {
	disk, broken := vfs.NewMem(), errors.New("broken")
	o := options(disk)
	o.Seed = func(ctx context.Context, s store.Store) error {
		return errors.Join(s.CreateTenant(ctx, model.Tenant{TenantID: "seed", DisplayName: "Seed"}), broken)
	}
	if _, err := Open(t.Context(), o); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if list, err := disk.ReadDir("."); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
}

// fileOf reads the file.
func fileOf(t *testing.T, files vfs.FS) []byte {
	t.Helper()
	f, err := files.Open(Name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func diskWith(t *testing.T, text []byte) *vfs.Mem {
	t.Helper()
	disk := vfs.NewMem()
	f, err := disk.Create(Name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(text, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close(), disk.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	return disk
}

// field case DUR-16, OPS-05
func TestAFileThatCannotBeReadIsRefusedAndLeftAlone(t *testing.T) {
	disk := vfs.NewMem()
	fill(t, open(t, disk))
	good := fileOf(t, disk)
	refused := func(what string, text []byte, as any) {
		t.Helper()
		bad := diskWith(t, text)
		before := bad.Hash()
		if _, err := Open(t.Context(), options(bad)); err == nil || !errors.As(err, as) {
			t.Errorf("%s: %v", what, err)
		}
		if bad.Hash() != before {
			t.Errorf("%s: refused and changed", what)
		}
	}
	var damage *DamageError
	for i := range good { // each byte, in one of its bits
		bad := append([]byte(nil), good...)
		bad[i] ^= 1 << (i % 8)
		if c, err := Decode(bad); err == nil {
			t.Errorf("byte %d of %d changed to %q: read as %+v", i, len(good), bad[i], c)
		}
	}
	for _, n := range []int{0, 1, len(good) / 2, len(good) - 1} {
		refused("cut short", good[:n], &damage)
	}
	refused("followed by something", append(append([]byte(nil), good...), '{'), &damage)
	refused("twice", append(append([]byte(nil), good...), good...), &damage)
	var version *VersionError
	refused("a newer version", seal(Version+1, "00000000", []byte(`{"anything":1}`)), &version)
	body := []byte(`{"epoch":"e","seq":1,"tenants":null,"namespaces":null,"streams":null,"caches":null,"later":1}`)
	refused("a version before the first", seal(0, "00000000", []byte(`{"anything":1}`)), &version)
	refused("a field that is not known", seal(Version, castagnoli(body), body), &damage)
	body = []byte(`{"epoch":"e","seq":1,"tenants":null,"namespaces":[{"tenant_id":"t","namespace":"n"}],"streams":null,"caches":null}`)
	refused("a namespace without its tenant", seal(Version, castagnoli(body), body), &damage)
}

// A daemon that is replaced by this one finds its streams and caches; the first write makes the file one of this version.
func TestAFileOfTheFirstVersionIsReadAndWrittenAnew(t *testing.T) {
	body := []byte(`{"epoch":"e1","seq":6,"tenants":[{"tenant_id":"t","display_name":"T"}],"namespaces":[{"tenant_id":"t","namespace":"n"}],` +
		`"streams":[{"definition":{"tenant_id":"t","namespace":"n","stream":"s","incarnation":5,"kind":"Stream","shards":1,"replication_factor":1,` +
		`"retention":{},"consistency":"Leader","delivery":"AtLeastOnce","durable":true,"routing":"modulo"},"logs":"AQAAAAAAAAAAAAAAAAAAAA=="}],` +
		`"caches":[{"tenant_id":"t","namespace":"n","cache":"users","incarnation":78,"display_name":"Users","shards":2,"replication_factor":1,"consistency":"Quorum"}]}`)
	disk := diskWith(t, seal(1, castagnoli(body), body))
	m := open(t, disk)
	got := everything(t, m)
	users := model.Cache{TenantID: "t", Namespace: "n", Cache: "users", Incarnation: 78, DisplayName: "Users", Shards: 2, ReplicationFactor: 1, Consistency: model.ConsistencyQuorum}
	if len(got.Caches) != 1 || got.Caches[0] != users || len(got.Streams) != 1 || got.Streams[0].Log(0) != (model.LogID{1}) || got.Seq != 6 {
		t.Fatalf("read %+v", got)
	}
	if _, err := m.SetCacheLogs(t.Context(), users.Key(), 78, []model.ShardLog{{Shard: 1, Log: model.LogID{9}}}); err != nil {
		t.Fatal(err)
	}
	want := everything(t, m)
	if again := everything(t, open(t, disk.CrashHard())); !reflect.DeepEqual(again, want) || again.Caches[0].Log(1) != (model.LogID{9}) {
		t.Fatalf("restarted with %+v, want %+v", again, want)
	}
	if text := fileOf(t, disk); !bytes.HasPrefix(text, []byte(`{"version":2,`)) {
		t.Fatalf("written as %.40s", text)
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	disk := vfs.NewMem()
	if err := disk.Mkdir(Name); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), options(disk)); err == nil {
		t.Fatal("a directory was taken for no catalog at all")
	}
}

func FuzzDecode(f *testing.F) {
	good, err := Encode(store.Catalog{Epoch: "e", Seq: 1, Tenants: []model.Tenant{{TenantID: "t", DisplayName: "T"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	body := []byte(`{"streams":[{"definition":{"stream":"s"},"logs":"AA=="}]}`)
	f.Add(seal(Version, castagnoli(body), body))
	f.Add(seal(firstVersion, castagnoli(body), body))
	body = []byte(`{"caches":[{"definition":{"cache":"c","in_memory":true},"logs":"AA=="}]}`)
	f.Add(seal(Version, castagnoli(body), body))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Decode(text)
		if err != nil {
			return
		}
		again, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := Decode(again); err != nil || !reflect.DeepEqual(c, second) {
			t.Fatalf("%+v came back as %+v, %v", c, second, err)
		}
	})
}
