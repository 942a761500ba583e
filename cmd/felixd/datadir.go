package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/felixd/felixd/storage/vfs"
)

// dataDir is the folder a daemon keeps its certificates, keys, catalog and dev.json in. One daemon uses it at a time.
type dataDir struct {
	path  string
	lock  *os.File
	files vfs.FS // the same folder
}

// openDataDir makes the folder if need be and locks it.
func openDataDir(path string) (*dataDir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w", path, err)
	}
	if err := makeDataDir(abs); err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w; name a folder that can be written, or mend its rights", path, err)
	}
	lock, err := os.OpenFile(filepath.Join(abs, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w; name a folder that can be written, or mend its rights", path, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("--data-dir %s: another felixd uses it; stop that one or name another folder", path)
		}
		return nil, fmt.Errorf("--data-dir %s: lock: %w", path, err)
	}
	files, err := vfs.NewOS(abs)
	if err == nil {
		err = giveBack(files)
	}
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("--data-dir %s: %w; name a folder that can be written, or mend its rights", path, err)
	}
	return &dataDir{path: abs, lock: lock, files: files}, nil
}

// makeDataDir makes the folder, for its owner alone, and what is missing above it, so that the names last.
func makeDataDir(abs string) error {
	parent := filepath.Dir(abs)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		if _, err := vfs.NewOS(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(abs, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil // its own name is synced where it is opened as a vfs.FS
}

// close lets another daemon have the folder. The lock file stays: removing it could let two daemons in.
func (d *dataDir) close() { _ = d.lock.Close() }

func (d *dataDir) file(name string) string { return filepath.Join(d.path, name) }

// read returns a file's content; ok is false when there is no such file.
func (d *dataDir) read(name string) (content []byte, ok bool, err error) {
	content, err = os.ReadFile(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return content, err == nil, err
}

// write replaces a file as one step: whoever reads it sees the old content or the new, never a part.
func (d *dataDir) write(name string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(d.path, "."+name+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", d.file(name), err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already when the rename succeeded
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), d.file(name))
	}
	if err == nil {
		err = syncDir(d.path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", d.file(name), err)
	}
	return nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
