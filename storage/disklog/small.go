package disklog

import (
	"errors"
	"io"
	iofs "io/fs"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// writeSmall replaces a small file: at any moment the old content or the new one is there, and the new one is durable when it returns.
// syncErr is set when the error is that of a sync.
func writeSmall(fs vfs.FS, dir, name string, content []byte) (syncErr bool, err error) {
	temp := join(dir, name+segment.TempSuffix)
	f, err := createAnew(fs, temp)
	if err != nil {
		return false, err
	}
	if _, err = f.WriteAt(content, 0); err != nil {
		f.Close()
		fs.Remove(temp)
		return false, err
	}
	if err = f.Sync(); err != nil {
		f.Close()
		return true, err
	}
	if err = f.Close(); err != nil {
		return false, err
	}
	if err = fs.Rename(temp, join(dir, name)); err != nil {
		return false, err
	}
	err = fs.SyncDir(dir)
	return err != nil, err
}

// createAnew makes an empty file where an unfinished one may have been left.
func createAnew(fs vfs.FS, name string) (vfs.File, error) {
	f, err := fs.Create(name)
	if !errors.Is(err, iofs.ErrExist) {
		return f, err
	}
	if err := fs.Remove(name); err != nil {
		return nil, err
	}
	return fs.Create(name)
}

// readSmall reads a whole file of at most limit bytes. fs.ErrNotExist if there is none.
func readSmall(fs vfs.FS, name string, limit int64) ([]byte, error) {
	f, err := fs.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(size, limit))
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}

func join(dir, name string) string {
	if dir == "" || dir == "." {
		return name
	}
	return dir + "/" + name
}

// path is the name of one of the log's files.
func (l *Log) path(name string) string { return l.spec.dir + "/" + name }

// orPoison passes the error of a sync on, and ends the log for it.
func (l *Log) orPoison(err error) error {
	if err != nil {
		l.poison(err)
	}
	return err
}
