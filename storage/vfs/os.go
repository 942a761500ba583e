package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Modes of what is made: the owner writes, its group may read, nobody else sees messages of clients.
const (
	fileMode = 0o640
	dirMode  = 0o750
)

// osFS is a directory of the machine. Nothing outside of it can be reached through it: not by a name, and not by a link.
type osFS struct{ root *os.Root }

// NewOS opens a directory of the machine as an FS. The directory is made if it is missing, each part of its path, and the names of all parts
// that were made are durable when it returns; so is the name of a directory that was there, as far as its parent may be opened.
func NewOS(root string) (FS, error) {
	if err := makeRoot(root); err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	return &osFS{root: r}, nil
}

// makeRoot makes a path, outermost part first, and syncs the directory above every part that it made and above the last one.
func makeRoot(root string) error {
	abs, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	var missing []string
	for dir := abs; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return err
		}
		missing = append(missing, dir)
	}
	for _, dir := range slices.Backward(missing) {
		if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := syncHostDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	// The process that made it may have been cut off before its sync. A parent that may not be read is not ours to sync.
	if err := syncHostDir(filepath.Dir(abs)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

func syncHostDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (o *osFS) Create(name string) (File, error) {
	if err := checkNew("create", name); err != nil {
		return nil, err
	}
	f, err := o.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	return &osFile{f: f, name: name}, nil
}

func (o *osFS) Open(name string, write bool) (File, error) {
	if err := checkChild(name); err != nil {
		return nil, err
	}
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	f, err := o.openRegular(name, flag)
	if err != nil {
		return nil, err
	}
	return &osFile{f: f, name: name}, nil
}

// openRegular opens a file that is there. os.Root follows links, inside the root only; a link in the last part is found by
// looking at the name first, and one that came in between by comparing what was seen with what was opened.
func (o *osFS) openRegular(name string, flag int) (*os.File, error) {
	seen, err := o.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, notRegular(name, kindOf(seen.Mode()))
	}
	f, err := o.root.OpenFile(name, flag, 0)
	if err != nil {
		return nil, err
	}
	got, err := f.Stat()
	if err == nil && !os.SameFile(seen, got) {
		err = &NameError{Name: name, Why: "it was replaced while it was being opened"}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func kindOf(m fs.FileMode) EntryKind {
	switch {
	case m.IsRegular():
		return Regular
	case m.IsDir():
		return Directory
	}
	return Other
}

// openDir opens a directory that is no link.
func (o *osFS) openDir(name string) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	info, err := o.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &NameError{Name: name, Why: "it is no directory"}
	}
	return o.root.Open(name)
}

func (o *osFS) Mkdir(name string) error {
	if err := checkNew("mkdir", name); err != nil {
		return err
	}
	return o.root.Mkdir(name, dirMode)
}

func (o *osFS) ReadDir(name string) ([]Entry, error) {
	d, err := o.openDir(name)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return nil, err
	}
	list := make([]Entry, 0, len(names))
	for _, base := range names {
		e, err := o.Stat(join(name, base))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went away after it was listed
		}
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func join(dir, base string) string {
	if dir == "." {
		return base
	}
	return dir + "/" + base
}

func (o *osFS) Stat(name string) (Entry, error) {
	if err := checkName(name); err != nil {
		return Entry{}, err
	}
	info, err := o.root.Lstat(name)
	if err != nil {
		return Entry{}, err
	}
	_, base := parentOf(name)
	e := Entry{Name: base, Kind: kindOf(info.Mode())}
	if e.Kind == Regular {
		e.Size = info.Size()
	}
	return e, nil
}

func (o *osFS) Rename(from, to string) error {
	if err := errors.Join(checkChild(from), checkChild(to)); err != nil {
		return err
	}
	// A directory in the way is refused on every system alike, empty or not.
	if info, err := o.root.Lstat(to); err == nil && info.IsDir() && from != to {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return o.root.Rename(from, to)
}

func (o *osFS) Remove(name string) error {
	if err := checkChild(name); err != nil {
		return err
	}
	return o.root.Remove(name)
}

func (o *osFS) SyncDir(name string) error {
	d, err := o.openDir(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (o *osFS) Device(name string) (uint64, error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	info, err := o.root.Lstat(name)
	if err != nil {
		return 0, err
	}
	return deviceOf(info)
}

func (o *osFS) Free(name string) (uint64, error) {
	d, err := o.openDir(name)
	if err != nil {
		return 0, err
	}
	free, err := freeOn(d)
	if err := errors.Join(err, d.Close()); err != nil {
		return 0, &fs.PathError{Op: "free", Path: name, Err: err}
	}
	return free, nil
}
