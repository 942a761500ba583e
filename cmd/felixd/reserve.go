package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/felixd/felixd/storage/vfs"
)

const (
	// reserveFile holds room on the disk of the data directory for a start on a full disk: dev.json is written anew, a log may have to
	// begin another file before retention can remove old ones.
	reserveFile = "reserve"
	// reserveBytes is far more than that takes and nothing that a disk for logs would miss.
	reserveBytes = 8 << 20
	// reserveAgain is the time between two tries to make it. A disk that has room again is used again at once; only the reserve waits.
	reserveAgain = 30 * time.Second
)

// giveBack removes the reserve, if there is one.
func giveBack(files vfs.FS) error {
	if err := files.Remove(reserveFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// keepReserve makes the reserve, and tries again for as long as the disk has no room for it, until ctx ends.
func keepReserve(ctx context.Context, files vfs.FS, logger *slog.Logger, wait func(context.Context, time.Duration)) {
	for told := false; ctx.Err() == nil; {
		err := makeReserve(files)
		if err == nil {
			return
		}
		if !told {
			logger.Warn("there is no room for the reserve that helps felixd to start on a full disk; it is tried again", "file", reserveFile, "bytes", reserveBytes, "error", err)
			told = true
		}
		wait(ctx, reserveAgain)
	}
}

// makeReserve leaves a file that holds reserveBytes of the disk, or none.
func makeReserve(files vfs.FS) error {
	if err := giveBack(files); err != nil {
		return err
	}
	f, err := files.Create(reserveFile)
	if err != nil {
		return err
	}
	err = f.Preallocate(reserveBytes)
	if errors.Is(err, errors.ErrUnsupported) {
		err = writeZeros(f, reserveBytes)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, giveBack(files))
	}
	return nil
}

func writeZeros(f vfs.File, size int64) error {
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros, at); err != nil {
			return err
		}
	}
	return nil
}
