package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// errHeld is what tryLock answers for a lock that somebody else has.
var errHeld = errors.New("the lock is held")

func (o *osFS) Lock(name string, shared bool, holder string) (io.Closer, error) {
	if err := checkChild(name); err != nil {
		return nil, err
	}
	f, err := o.openLock(name, shared)
	if err != nil {
		return nil, err
	}
	err = tryLock(f, name, shared)
	if errors.Is(err, errHeld) {
		err = &LockedError{Name: name, Holder: readHolder(f)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !shared {
		writeHolder(f, holder)
	}
	return f, nil
}

func (o *osFS) openLock(name string, shared bool) (*os.File, error) {
	if shared {
		return o.openRegular(name, os.O_RDONLY)
	}
	f, err := o.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return o.openRegular(name, os.O_RDWR)
	}
	return f, err
}

// readHolder is for a message: a file that cannot be read names nobody.
func readHolder(f *os.File) string {
	b := make([]byte, holderBytes)
	n, _ := f.ReadAt(b, 0)
	return readableHolder(b[:n])
}

// writeHolder leaves word for whoever finds the lock held. It is no part of the lock: on a full disk, where a broker must be able to start,
// there is no word.
func writeHolder(f *os.File, holder string) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(cutHolder(holder)), 0)
	}
}
