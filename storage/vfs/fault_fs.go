package vfs

import (
	"io"
	"io/fs"
)

// Create makes a new file.
func (f *Fault) Create(name string) (File, error) {
	file, err := closing(f, func() (File, error) { return f.inner.Create(name) }, CallCreate, name)
	return f.wrap(file, name, err)
}

// Open opens a file.
func (f *Fault) Open(name string, write bool) (File, error) {
	file, err := closing(f, func() (File, error) { return f.inner.Open(name, write) }, CallOpen, name)
	return f.wrap(file, name, err)
}

func (f *Fault) wrap(file File, name string, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return &faultFile{f: f, inner: file, name: name}, nil
}

// Mkdir makes a directory.
func (f *Fault) Mkdir(name string) error {
	return f.call(func() error { return f.inner.Mkdir(name) }, CallMkdir, name)
}

// ReadDir lists a directory.
func (f *Fault) ReadDir(name string) (list []Entry, err error) {
	err = f.call(func() (err error) { list, err = f.inner.ReadDir(name); return err }, CallReadDir, name)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Stat describes a name.
func (f *Fault) Stat(name string) (e Entry, err error) {
	err = f.call(func() (err error) { e, err = f.inner.Stat(name); return err }, CallStat, name)
	if err != nil {
		return Entry{}, err
	}
	return e, nil
}

// Rename moves a file or directory.
func (f *Fault) Rename(from, to string) error {
	return f.call(func() error { return f.inner.Rename(from, to) }, CallRename, from, to)
}

// Remove removes a file or an empty directory.
func (f *Fault) Remove(name string) error {
	return f.call(func() error { return f.inner.Remove(name) }, CallRemove, name)
}

// SyncDir makes the names in a directory durable.
func (f *Fault) SyncDir(name string) error {
	return f.call(func() error { return f.inner.SyncDir(name) }, CallSyncDir, name)
}

// Lock takes a lock. Its Close is the inner one's.
func (f *Fault) Lock(name string, shared bool, holder string) (io.Closer, error) {
	return closing(f, func() (io.Closer, error) { return f.inner.Lock(name, shared, holder) }, CallLock, name)
}

// Device tells devices apart.
func (f *Fault) Device(name string) (n uint64, err error) {
	err = f.call(func() (err error) { n, err = f.inner.Device(name); return err }, CallDevice, name)
	return n, err
}

// Free is how many bytes may still be written.
func (f *Fault) Free(name string) (n uint64, err error) {
	err = f.call(func() (err error) { n, err = f.inner.Free(name); return err }, CallFree, name)
	return n, err
}

// faultFile is a file of a Fault.
type faultFile struct {
	f     *Fault
	inner File
	name  string
}

func (f *faultFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.f.call(func() (err error) { n, err = f.inner.ReadAt(p, off); return err }, CallRead, f.name)
	return n, err
}

func (f *faultFile) WriteAt(p []byte, off int64) (n int, err error) {
	r := f.f.enter(CallWrite, f.name)
	if r == nil {
		return f.inner.WriteAt(p, off)
	}
	part := p[:0]
	switch {
	case r.Short:
		part = p[:len(p)/2]
	case r.Late:
		part = p
	}
	if len(part) > 0 {
		if n, err = f.inner.WriteAt(part, off); err != nil {
			return n, err
		}
	}
	err = r.Err
	if err == nil {
		err = io.ErrShortWrite
	}
	return n, &fs.PathError{Op: CallWrite.String(), Path: f.name, Err: err}
}

func (f *faultFile) Truncate(size int64) error {
	return f.f.call(func() error { return f.inner.Truncate(size) }, CallTruncate, f.name)
}

func (f *faultFile) Sync() error { return f.f.call(f.inner.Sync, CallSync, f.name) }

func (f *faultFile) Size() (n int64, err error) {
	err = f.f.call(func() (err error) { n, err = f.inner.Size(); return err }, CallSize, f.name)
	return n, err
}

func (f *faultFile) Preallocate(size int64) error {
	return f.f.call(func() error { return f.inner.Preallocate(size) }, CallPreallocate, f.name)
}

// Close closes the file also if a rule makes it fail, as the system does.
func (f *faultFile) Close() error {
	r := f.f.enter(CallClose, f.name)
	err := f.inner.Close()
	if r != nil && err == nil {
		err = &fs.PathError{Op: CallClose.String(), Path: f.name, Err: r.Err}
	}
	return err
}
