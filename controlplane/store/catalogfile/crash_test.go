package catalogfile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
	"github.com/felixd/felixd/storage/vfs"
)

// writes is a run of writes of every kind, each of which changes something.
func writes(m store.Store) []func() error {
	ctx, compress := context.Background(), true
	stream := model.Stream{TenantID: "t", Namespace: "n", Stream: "s", Incarnation: 5, Kind: model.StreamKindStream, Shards: 1, ReplicationFactor: 1,
		Consistency: model.ConsistencyLeader, Delivery: model.DeliveryAtLeastOnce, Durable: true}
	cached := model.Cache{TenantID: "t", Namespace: "n", Cache: "c", Incarnation: 6, Shards: 1, ReplicationFactor: 1, Consistency: model.ConsistencyLeader}
	return []func() error{
		func() error { return m.CreateTenant(ctx, model.Tenant{TenantID: "t", DisplayName: "T"}) },
		func() error { return m.CreateNamespace(ctx, model.Namespace{TenantID: "t", Namespace: "n"}) },
		func() error { _, _, err := m.CreateStream(ctx, stream); return err },
		func() error {
			_, err := m.PatchStream(ctx, stream.Key(), model.StreamPatch{Compress: &compress})
			return err
		},
		func() error {
			_, err := m.SetLogs(ctx, stream.Key(), 5, []model.ShardLog{{Log: model.LogID{1}}})
			return err
		},
		func() error { _, _, err := m.CreateCache(ctx, cached); return err },
		func() error {
			_, err := m.SetCacheLogs(ctx, cached.Key(), 6, []model.ShardLog{{Log: model.LogID{2}}})
			return err
		},
		func() error { return m.DeleteTenant(ctx, "t") },
	}
}

// A crash at any step of any write leaves the catalog before that write or the one after it; what was answered is there.
//
// field case DUR-14; matrix M10
func TestACrashAtAnyStepLeavesTheOldCatalogOrTheNew(t *testing.T) {
	disk := vfs.NewMem()
	m := open(t, disk)
	random := rand.New(rand.NewPCG(1, 2))
	crashes := 0
	for i := range writes(m) {
		old := everything(t, m)
		var left []*vfs.Mem
		disk.OnOp(func(vfs.Op) {
			left = append(left, disk.Clone(), disk.CrashHard())
			for range 4 {
				left = append(left, disk.Crash(random.IntN))
			}
		})
		if err := writes(m)[i](); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		disk.OnOp(nil)
		now := everything(t, m)
		for n, d := range left {
			got := everything(t, open(t, d))
			if !reflect.DeepEqual(got, old) && !reflect.DeepEqual(got, now) {
				t.Fatalf("write %d, crash %d leaves\n%+v\nneither\n%+v\nnor\n%+v", i, n, got, old, now)
			}
		}
		for range 4 { // answered
			if got := everything(t, open(t, disk.Crash(random.IntN))); !reflect.DeepEqual(got, now) {
				t.Fatalf("write %d was answered, and a crash leaves\n%+v\nwant\n%+v", i, got, now)
			}
		}
		crashes += len(left)
	}
	if crashes < 6*6*12 {
		t.Fatalf("only %d crashes", crashes)
	}
}

// After a crash anywhere in a write the next life can write, whatever the crash left lying about.
func TestWhatACrashLeavesDoesNotHinderTheNextWrite(t *testing.T) {
	disk := vfs.NewMem()
	m := open(t, disk)
	var left []*vfs.Mem
	disk.OnOp(func(vfs.Op) { left = append(left, disk.Clone(), disk.CrashHard()) })
	if err := writes(m)[0](); err != nil {
		t.Fatal(err)
	}
	for n, d := range left {
		again := open(t, d)
		if err := again.CreateTenant(t.Context(), model.Tenant{TenantID: "u", DisplayName: "U"}); err != nil {
			t.Fatalf("crash %d: %v", n, err)
		}
		list, err := d.ReadDir(".")
		if err != nil || len(list) != 1 || list[0].Name != Name {
			t.Fatalf("crash %d: the directory holds %v, %v", n, list, err)
		}
	}
}

// A crash in the very first write leaves no catalog or the whole of it.
//
// field case DUR-09
func TestACrashInTheFirstWriteIsAStartFromNothing(t *testing.T) {
	disk := vfs.NewMem()
	var left []*vfs.Mem
	disk.OnOp(func(vfs.Op) { left = append(left, disk.Clone(), disk.CrashHard()) })
	open(t, disk)
	for n, d := range left {
		if got := everything(t, open(t, d)); got.Seq != 0 {
			t.Fatalf("crash %d leaves %+v", n, got)
		}
	}
}

// failing is a disk whose nth call that changes it fails.
type failing struct {
	vfs.FS
	left int
	err  error
}

func (f *failing) step() error {
	if f.left--; f.left == 0 {
		return f.err
	}
	return nil
}

func (f *failing) Create(name string) (vfs.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.FS.Create(name)
	return &failingFile{file, f}, err
}

func (f *failing) Rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *failing) SyncDir(name string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}

type failingFile struct {
	vfs.File
	of *failing
}

func (f *failingFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.of.step(); err != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], off)
		return n, err
	}
	return f.File.WriteAt(p, off)
}

func (f *failingFile) Sync() error {
	if err := f.of.step(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *failingFile) Close() error { return errors.Join(f.of.step(), f.File.Close()) }

// A write that cannot be saved is refused, nobody sees it, and the next one goes on from what was there.
func TestAFailedSaveChangesNothingAndTheNextOneWorks(t *testing.T) {
	const steps = 6 // create, write, sync, close, rename, sync of the directory
	for step := 1; step <= steps; step++ {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			disk := vfs.NewMem()
			bad := &failing{FS: disk, err: errors.New("no")}
			m := open(t, bad)
			fill(t, m)
			old := everything(t, m)
			bad.left = step
			err := m.DeleteTenant(t.Context(), "t")
			var save *store.SaveError
			if !errors.As(err, &save) || !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, bad.err) || save.Unknown != (step >= 5) {
				t.Fatalf("%v", err)
			}
			if got := everything(t, m); !reflect.DeepEqual(got, old) {
				t.Fatalf("the refused write left %+v", got)
			}
			page, err := m.Changes(t.Context(), model.KindTenants, old.Seq, 10)
			if err != nil || len(page.Items) != 0 {
				t.Fatalf("the feed tells of the refused write: %+v, %v", page, err)
			}
			if err := m.CreateTenant(t.Context(), model.Tenant{TenantID: "u", DisplayName: "U"}); err != nil {
				t.Fatalf("the next write: %v", err)
			}
			if got, want := everything(t, open(t, disk.CrashHard())), everything(t, m); !reflect.DeepEqual(got, want) {
				t.Fatalf("a restart finds\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

// Where it is not known whether a write is there, a crash finds it or not, but never a part.
func TestAnUnknownSaveIsThereWholeOrNotAtAllAfterACrash(t *testing.T) {
	disk := vfs.NewMem()
	bad := &failing{FS: disk, err: errors.New("no")}
	m := open(t, bad)
	fill(t, m)
	old := everything(t, m)
	bad.left = 6
	if err := m.DeleteTenant(t.Context(), "t"); err == nil {
		t.Fatal("the write was answered")
	}
	for what, d := range map[string]*vfs.Mem{"killed": disk.Clone(), "power cut": disk.CrashHard()} {
		if got := everything(t, open(t, d)); !reflect.DeepEqual(got, old) && len(got.Tenants)+len(got.Streams) != 0 {
			t.Fatalf("%s: %+v", what, got)
		}
	}
}

// A full disk refuses writes by name, and takes them again when there is room.
func TestAFullDiskRefusesWritesUntilThereIsRoom(t *testing.T) {
	disk := vfs.NewMem()
	m := open(t, disk)
	fill(t, m)
	disk.SetCapacity(disk.Used())
	err := m.CreateTenant(t.Context(), model.Tenant{TenantID: "u", DisplayName: "U"})
	if !vfs.IsNoSpace(err) || !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("%v", err)
	}
	disk.SetCapacity(vfs.Unlimited)
	if err := m.CreateTenant(t.Context(), model.Tenant{TenantID: "u", DisplayName: "U"}); err != nil {
		t.Fatal(err)
	}
}
