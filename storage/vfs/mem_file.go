package vfs

import (
	"io"
	"io/fs"
	"syscall"
)

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.ready("read", false); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: syscall.EINVAL}
	}
	n := f.m.disk.nodes[f.at].read(p, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (n int, err error) {
	op := Op{Call: CallWrite, Name: f.name, Off: off, Len: int64(len(p))}
	f.m.tell(op, Before, nil)
	cut := middle(len(p), off)
	if cut > 0 {
		if n, err = f.writeSome(p[:cut], off); err == nil {
			f.m.tell(op, Midway, nil)
		}
	}
	if err == nil {
		var more int
		more, err = f.writeSome(p[cut:], off+int64(cut))
		n += more
	}
	f.m.tell(op, After, err)
	return n, err
}

// middle is how much of a write goes before its middle page; 0 if it touches one page only.
func middle(length int, off int64) int {
	if off < 0 || length == 0 {
		return 0
	}
	first, last := off/pageSize, (off+int64(length)-1)/pageSize
	if first == last {
		return 0
	}
	return int((first+(last-first+1)/2)*pageSize - off)
}

func (f *memFile) writeSome(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.ready("write", true); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: syscall.EINVAL}
	}
	if off > maxFile-int64(len(p)) {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: syscall.EFBIG}
	}
	n, err := f.m.disk.write(f.at, p, off)
	if err != nil {
		return n, &fs.PathError{Op: "write", Path: f.name, Err: err}
	}
	return n, nil
}

func (f *memFile) Truncate(size int64) error {
	return f.m.change(Op{Call: CallTruncate, Name: f.name, Len: size}, func() error {
		if err := f.ready("truncate", true); err != nil {
			return err
		}
		if err := checkSize("truncate", f.name, size); err != nil {
			return err
		}
		f.m.disk.truncate(f.at, size)
		return nil
	})
}

func checkSize(op, name string, size int64) error {
	if size < 0 {
		return &fs.PathError{Op: op, Path: name, Err: syscall.EINVAL}
	}
	if size > maxFile {
		return &fs.PathError{Op: op, Path: name, Err: syscall.EFBIG}
	}
	return nil
}

func (f *memFile) Sync() error {
	return f.m.change(Op{Call: CallSync, Name: f.name}, func() error {
		if err := f.ready("sync", false); err != nil {
			return err
		}
		f.m.disk.own(f.at).sync()
		return nil
	})
}

func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.ready("size", false); err != nil {
		return 0, err
	}
	return f.m.disk.nodes[f.at].size, nil
}

func (f *memFile) Preallocate(size int64) error {
	return f.m.change(Op{Call: CallPreallocate, Name: f.name, Len: size}, func() error {
		if err := f.ready("preallocate", true); err != nil {
			return err
		}
		if err := checkSize("preallocate", f.name, size); err != nil {
			return err
		}
		if err := f.m.disk.reserve(f.at, size); err != nil {
			return &fs.PathError{Op: "preallocate", Path: f.name, Err: err}
		}
		return nil
	})
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.ready("close", false); err != nil {
		return err
	}
	f.done = true
	f.m.closed(f.at)
	return nil
}
