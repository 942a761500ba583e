package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// Options says what to look at.
type Options struct {
	// Dir is one log's directory below the root, like caches/acme_default_prices_0-...; empty: all logs of the store.
	Dir    string
	Verify segment.Verify // how much is read; the zero value reads everything
	// Progress, if not nil, is told for each log how many bytes were read and how many will be.
	Progress func(dir string, done, total int64)
}

// Report is what a store holds.
type Report struct {
	Logs    []Log    `json:"logs"`    // by kind, then directory
	Deleted []string `json:"deleted"` // logs set aside, that a janitor will remove
	Foreign []string `json:"foreign"` // names at the root that are not of a store
}

// Refuses counts the logs that a start would not open.
func (r *Report) Refuses() int {
	n := 0
	for i := range r.Logs {
		if r.Logs[i].Verdict == Refuses {
			n++
		}
	}
	return n
}

// NotAStoreError says that a directory was never the root of a store.
type NotAStoreError struct{ Why string }

func (e *NotAStoreError) Error() string {
	return "this is not the directory of a store: " + e.Why + ". Give the directory that holds " + segment.LockName + " (FELIX_DURABLE_STORAGE_DIR)"
}

// NotALogError says that a directory is not one that holds a log.
type NotALogError struct{ Dir string }

func (e *NotALogError) Error() string {
	return fmt.Sprintf("%q is not the directory of a log: give one as `felixd inspect` prints it, for example caches/acme_default_prices_0-<16 digits>-<16 digits>", e.Dir)
}

// Inspect reads the store at the root of disk, under a shared lock: a *vfs.LockedError says that a process has it open. Damage is no
// error: it is what the report is about. Errors are *NotAStoreError, *NotALogError, and those of reading directories.
func Inspect(disk vfs.FS, o Options) (*Report, error) {
	lock, err := disk.Lock(segment.LockName, true, "")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotAStoreError{Why: segment.LockName + " is not there"}
	}
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	defer lock.Close() // shared: nothing was written
	r := &Report{Logs: []Log{}, Deleted: []string{}, Foreign: []string{}}
	if o.Dir != "" {
		p, err := placeOf(o.Dir)
		if err != nil {
			return nil, err
		}
		return r, r.add(disk, p, &o)
	}
	for _, kind := range segment.LogKinds() {
		if err := r.kind(disk, kind, &o); err != nil {
			return nil, err
		}
	}
	deleted, err := list(disk, segment.DeletedName)
	for _, e := range deleted {
		r.Deleted = append(r.Deleted, path.Join(segment.DeletedName, e.Name))
	}
	return r, err
}

// kind adds all logs of a kind.
func (r *Report) kind(disk vfs.FS, kind segment.LogKind, o *Options) error {
	root := kind.Root()
	if root == "" {
		root = "."
	}
	entries, err := list(disk, root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p, err := placeOf(path.Join(root, e.Name))
		switch {
		case err == nil && e.Kind == vfs.Directory:
			if err := r.add(disk, p, o); err != nil {
				return err
			}
		case !ours(kind, e.Name):
			r.Foreign = append(r.Foreign, path.Join(root, e.Name))
		}
	}
	return nil
}

// ours reports whether a name belongs to the store, beside the logs.
func ours(kind segment.LogKind, name string) bool {
	if kind != segment.Stream {
		return false
	}
	for _, k := range segment.LogKinds() {
		if name == k.Root() {
			return true
		}
	}
	return name == segment.LockName || name == segment.DeletedName || name == segment.SalvagedName
}

// list reads a directory; one that is not there is empty.
func list(disk vfs.FS, dir string) ([]vfs.Entry, error) {
	entries, err := disk.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect: read directory %s: %w", dir, err)
	}
	return entries, nil
}

// place is where a log lies, and what its place says about it.
type place struct {
	dir         string
	kind        segment.LogKind
	keyHash     uint64
	incarnation id.Incarnation
}

// placeOf reads the directory of a log. *NotALogError if it is none.
func placeOf(dir string) (*place, error) {
	root, name := path.Split(dir)
	root = strings.TrimSuffix(root, "/")
	for _, kind := range segment.LogKinds() {
		if kind.Root() != root {
			continue
		}
		if hash, incarnation, ok := segment.ParseDirName(name); ok {
			return &place{path.Join(root, name), kind, hash, incarnation}, nil
		}
	}
	return nil, &NotALogError{Dir: dir}
}

// input is what the plan of a log is made of, as far as its place tells. The files are those of dir.
func (p *place) input(disk vfs.FS, dir string) (*segment.PlanInput, error) {
	entries, err := list(disk, dir)
	if err != nil {
		return nil, err
	}
	in := &segment.PlanInput{
		Shard: dir, NameHash: segment.NameHash(p.keyHash, p.kind), Incarnation: p.incarnation, Kind: p.kind,
		Open: func(name string) (segment.Reader, error) { return disk.Open(path.Join(dir, name), false) },
	}
	for _, e := range entries {
		in.Entries = append(in.Entries, segment.Entry{Name: e.Name, Size: e.Size, Regular: e.Kind == vfs.Regular})
	}
	return in, nil
}
