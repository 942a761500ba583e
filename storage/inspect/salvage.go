package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// copyPiece is how much of a file is held while it is copied, in bytes.
const copyPiece = 256 << 10

// salvage copies every segment that the plan cuts or removes, whole, and the mark, into a new directory below salvaged/. The copies
// are durable when it returns, and only then anything is changed.
func (r *repair) salvage(plan *segment.Plan, entries []segment.Entry) error {
	dir, err := r.aside()
	if err != nil {
		return err
	}
	r.out.Salvaged = dir
	for _, e := range entries {
		_, isSegment := segment.ParseFileName(e.Name)
		goes := isSegment && (slices.Contains(plan.Delete, e.Name) || plan.Cut != nil && plan.Cut.Name == e.Name)
		if !e.Regular || !goes && e.Name != segment.MarkName {
			continue
		}
		if err := r.copy(r.path(e.Name), path.Join(dir, e.Name), e.Size); err != nil {
			return fmt.Errorf("keep %s aside: %w", e.Name, err)
		}
	}
	return r.disk.SyncDir(dir)
}

// aside makes the next free directory for this log below salvaged/, and makes its name durable.
func (r *repair) aside() (string, error) {
	parent := r.parent()
	for _, dir := range []string{segment.SalvagedName, parent} {
		if err := r.mkdir(dir); err != nil {
			return "", err
		}
	}
	for n := 1; ; n++ { // ends: each try looks at one more directory that is there
		dir := path.Join(parent, fmt.Sprint(n))
		err := r.disk.Mkdir(dir)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		return dir, r.disk.SyncDir(parent)
	}
}

// parent is the directory below salvaged/ for what is taken out of this log.
func (r *repair) parent() string {
	return path.Join(segment.SalvagedName, strings.ReplaceAll(r.place.dir, "/", "+"))
}

// mkdir makes a directory that may be there, durably.
func (r *repair) mkdir(dir string) error {
	if err := r.disk.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return r.disk.SyncDir(path.Dir(dir))
}

// copy copies one file, durably.
func (r *repair) copy(from, to string, size int64) error {
	src, err := r.disk.Open(from, false)
	if err != nil {
		return err
	}
	defer src.Close() // it was only read
	return r.write(to, func(dst vfs.File) error {
		buf := make([]byte, min(copyPiece, size))
		for at := int64(0); at < size; at += int64(len(buf)) {
			buf = buf[:min(int64(len(buf)), size-at)]
			if n, err := src.ReadAt(buf, at); n < len(buf) {
				if err == nil || err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
			if _, err := dst.WriteAt(buf, at); err != nil {
				return err
			}
		}
		return nil
	})
}

// write makes a new file with what fill puts into it, and syncs it.
func (r *repair) write(name string, fill func(f vfs.File) error) error {
	f, err := r.disk.Create(name)
	if err != nil {
		return err
	}
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// put makes a new file with these bytes, and syncs it.
func (r *repair) put(name string, b []byte) error {
	return r.write(name, func(f vfs.File) error {
		_, err := f.WriteAt(b, 0)
		return err
	})
}
