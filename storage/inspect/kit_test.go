package inspect

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// kit is a store with one log in it: two sealed segments and an open one, four batches in each.
type kit struct {
	t    testing.TB
	disk *vfs.Mem
	dir  string
	meta segment.Meta
	salt segment.Salt
	next id.Offset
	at   []int64 // where the batches of the open segment begin
	mark segment.Mark
}

func newKit(t testing.TB, kind segment.LogKind) *kit {
	key := segment.Key{Tenant: "acme", Namespace: "default", Name: "orders"}
	k := &kit{t: t, disk: vfs.NewMem(), next: 10, dir: path.Join(kind.Root(), segment.DirName(&key, 3)), meta: segment.Meta{
		Log: id.LogID{9}, Incarnation: 3, Generation: 1, NameHash: segment.NameHash(key.Hash(), kind), Kind: kind,
	}}
	k.salt = segment.SaltOf(k.meta.Log)
	lock, err := k.disk.Lock(segment.LockName, false, "kit")
	k.do(err)
	k.do(lock.Close())
	if kind.Root() != "" {
		k.do(k.disk.Mkdir(kind.Root()))
	}
	k.do(k.disk.SyncDir("."))
	k.do(k.disk.Mkdir(k.dir))
	k.do(k.disk.SyncDir(path.Dir(k.dir)))
	k.file(segment.MetaName, segment.AppendMeta(nil, &k.meta))
	for n := range uint64(3) {
		k.segment(n, n < 2)
	}
	k.file(segment.MarkName, segment.AppendMark(nil, k.salt, &k.mark))
	return k
}

func (k *kit) do(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// segment writes one segment.
func (k *kit) segment(n uint64, sealed bool) {
	base := k.next
	b := segment.AppendHeader(nil, &segment.Header{Log: k.meta.Log, NameHash: k.meta.NameHash, Base: base, ID: n})
	k.at = nil
	for i := range 4 {
		body := make([]byte, 900)
		for j := range body {
			body[j] = byte(int(n)*31 + i*7 + j)
		}
		k.at = append(k.at, int64(len(b)))
		h := segment.Describe(&batch.Batch{Base: k.next, Count: 2, Kind: batch.Records, AppendMicros: 5, Body: body}, segment.Sum(body))
		b = append(segment.AppendBatchHeader(b, k.salt, &h), body...)
		k.next = h.End()
	}
	k.mark = segment.Mark{Segment: n, Synced: int64(len(b)), Base: base}
	if sealed {
		b = segment.AppendFooter(b, k.salt, &segment.Footer{Length: int64(len(b)), FileSum: segment.Sum(b), Batches: 4, End: k.next, MinMicros: 5, MaxMicros: 5, ID: n})
	}
	k.file(segment.FileName(n), b)
}

// file replaces a file of the log, durably.
func (k *kit) file(name string, b []byte) {
	k.t.Helper()
	f, err := k.disk.Create(path.Join(k.dir, name))
	if errors.Is(err, fs.ErrExist) {
		f, err = k.disk.Open(path.Join(k.dir, name), true)
	}
	k.do(err)
	k.do(f.Truncate(0))
	_, err = f.WriteAt(b, 0)
	k.do(err)
	k.do(f.Sync())
	k.do(f.Close())
	k.do(k.disk.SyncDir(k.dir))
}

// read is a whole file; false if it is not there.
func read(t testing.TB, disk vfs.FS, name string) ([]byte, bool) {
	t.Helper()
	f, err := disk.Open(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	if err != nil {
		t.Fatal(err)
	}
	return b, true
}

// flip turns a bit of a file of the log.
func (k *kit) flip(name string, position int64) {
	b, ok := read(k.t, k.disk, path.Join(k.dir, name))
	if !ok {
		k.t.Fatalf("%s is not there", name)
	}
	b[position] ^= 4
	k.file(name, b)
}

// only is the report on the one log of a disk.
func only(t testing.TB, disk vfs.FS) Log {
	t.Helper()
	r, err := Inspect(disk, Options{})
	if err != nil || len(r.Logs) != 1 {
		t.Fatalf("the report is %+v, %v", r, err)
	}
	return r.Logs[0]
}
