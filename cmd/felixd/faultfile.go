package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/felixd/felixd/storage/vfs"
)

// faultFileRead is the time between two looks at the fault file: soon for a test that waits, and nothing for anybody else, since without
// the setting nobody looks.
const faultFileRead = 50 * time.Millisecond

// checkFaultFile refuses a file that says nothing that can be followed. It has to be there: a name that is misspelled would be a test of
// nothing.
func checkFaultFile(name string) error {
	if _, err := os.Stat(name); err != nil {
		return fmt.Errorf("%w; make it, empty if nothing is to fail yet", err)
	}
	return vfs.NewFault(nil, nil).LoadFile(name)
}

// withFaults puts the rules of a file between a log and its disk. follow keeps reading the file until its context ends; a file that
// is gone has no rules, and one that cannot be followed leaves those that are in force.
func withFaults(files vfs.FS, name string, logger *slog.Logger) (faulty *vfs.Fault, follow func(context.Context), err error) {
	faulty = vfs.NewFault(files, nil)
	if err := faulty.LoadFile(name); err != nil {
		return nil, nil, err
	}
	follow = func(ctx context.Context) {
		told := ""
		for ctx.Err() == nil {
			pause(ctx, faultFileRead)
			err := faulty.LoadFile(name)
			if err != nil && err.Error() != told {
				logger.Warn("the fault file can't be followed; what it said before stays in force", "error", err)
				told = err.Error()
			}
		}
		faulty.Set(nil) // what is held up must not hold up the end
	}
	return faulty, follow, nil
}
