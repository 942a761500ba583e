// Package catalogfile keeps the catalog of a single daemon in one file. It is a memory store that writes all of itself before
// any write is answered or seen: what was answered is there after a crash, and what was not answered is there whole or not at all.
//
// A write replaces the file: a new one is written beside it and synced, renamed over it, and the directory is synced. Wherever
// that ends, the name stands for the old catalog or for the new one. Since every write carries the whole catalog, a success
// makes up for all failures before it; nothing has to be remembered about them.
//
// The cost of a write grows with the catalog, about a millisecond for a thousand records beside the two syncs. That is for
// catalogs that people make by hand or a deploy makes once.
package catalogfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/felixd/felixd/controlplane/store"
	"github.com/felixd/felixd/storage/vfs"
)

const (
	// Name is the file, at the root of its FS.
	Name = "catalog.json"
	// fresh is where the next one is written.
	fresh = Name + ".new"
)

// Options is what a file-backed catalog needs.
type Options struct {
	// FS holds the file at its root. Nobody else may write there meanwhile.
	FS vfs.FS
	// Store configures the store; Start and Save are set here. Its Epoch is for a catalog that is new.
	Store store.MemoryOptions
	// Seed fills a new catalog, which is written when it has succeeded; one that was there is left as it is. Nil fills nothing.
	Seed func(context.Context, store.Store) error
}

// Open reads the catalog, or makes it where there is none. It changes nothing where it finds one. Errors: *DamageError,
// *VersionError, those of Seed and of the FS.
func Open(ctx context.Context, o Options) (*store.Memory, error) {
	c, found, err := read(o.FS)
	if err != nil {
		return nil, err
	}
	if !found {
		if c, err = first(ctx, o); err != nil {
			return nil, err
		}
		if err := write(o.FS, c); err != nil {
			return nil, err
		}
	}
	o.Store.Start, o.Store.Save = c, func(c store.Catalog) error { return write(o.FS, c) }
	return store.NewMemory(o.Store), nil
}

// first makes what a new file begins with.
func first(ctx context.Context, o Options) (store.Catalog, error) {
	o.Store.Start, o.Store.Save = store.Catalog{}, nil
	m := store.NewMemory(o.Store)
	if o.Seed != nil {
		if err := o.Seed(ctx, m); err != nil {
			return store.Catalog{}, fmt.Errorf("fill the catalog: %w", err)
		}
	}
	return m.Catalog(ctx)
}

// read returns what the file holds; found is false where there is none.
func read(files vfs.FS) (c store.Catalog, found bool, err error) {
	f, err := files.Open(Name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("read the catalog: %w", err)
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err != nil {
		return c, false, fmt.Errorf("read the catalog: %w", err)
	}
	if size > BytesMax {
		return c, false, damaged("it has %d bytes, more than any catalog", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), text); err != nil {
		return c, false, fmt.Errorf("read the catalog: %w", err)
	}
	c, err = Decode(text)
	return c, err == nil, err
}

// write replaces the file. It fails with a *store.SaveError.
func write(files vfs.FS, c store.Catalog) error {
	text, err := Encode(c)
	if err != nil {
		return &store.SaveError{Err: err}
	}
	if err := put(files, text); err != nil {
		_ = files.Remove(fresh) // the next write removes it too, should this fail as well
		return &store.SaveError{Err: err}
	}
	if err := files.Rename(fresh, Name); err != nil {
		return &store.SaveError{Err: err, Unknown: true}
	}
	if err := files.SyncDir("."); err != nil {
		return &store.SaveError{Err: err, Unknown: true}
	}
	return nil
}

// put writes and syncs the new file.
func put(files vfs.FS, text []byte) error {
	if err := files.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := files.Create(fresh)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
