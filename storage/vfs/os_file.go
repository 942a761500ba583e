package vfs

import (
	"io/fs"
	"os"
)

// osFile is a file of the machine. os.File repeats interrupted and short transfers, and keeps the descriptor for calls that run when
// it is closed.
type osFile struct {
	f    *os.File
	name string
}

func (f *osFile) ReadAt(p []byte, off int64) (int, error)  { return f.f.ReadAt(p, off) }
func (f *osFile) WriteAt(p []byte, off int64) (int, error) { return f.f.WriteAt(p, off) }
func (f *osFile) Truncate(size int64) error                { return f.f.Truncate(size) }
func (f *osFile) Sync() error                              { return syncFile(f.f, f.name) }
func (f *osFile) Close() error                             { return f.f.Close() }

func (f *osFile) Size() (int64, error) {
	info, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *osFile) Preallocate(size int64) error {
	if size == 0 {
		size = 1 // nothing to reserve, but a closed file must still say so
	}
	return preallocate(f.f, f.name, size)
}

// control runs a system call on the descriptor, which stays open meanwhile.
func control(f *os.File, op, name string, call func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	// Control fails for one reason only: the file is closed. It says so with an error that is not fs.ErrClosed.
	if err := conn.Control(func(fd uintptr) { result = call(int(fd)) }); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrClosed}
	}
	if result != nil {
		return &fs.PathError{Op: op, Path: name, Err: result}
	}
	return nil
}
