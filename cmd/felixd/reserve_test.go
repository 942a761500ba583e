package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/vfs"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func TestTheReserveHoldsRoomThatAStartGivesBack(t *testing.T) {
	disk := vfs.NewMem()
	keepReserve(t.Context(), disk, quiet(), nil)
	if got := disk.Used(); got != reserveBytes {
		t.Fatalf("the reserve holds %d bytes", got)
	}
	keepReserve(t.Context(), disk, quiet(), nil) // one that was left over is replaced
	if got := disk.Used(); got != reserveBytes || disk.OpenFiles() != 0 {
		t.Fatalf("the second reserve holds %d bytes, %d files are open", got, disk.OpenFiles())
	}
	for range 2 { // also where there is none
		if err := giveBack(disk); err != nil || disk.Used() != 0 {
			t.Fatalf("%d bytes are held: %v", disk.Used(), err)
		}
	}
}

func TestAReserveThatHasNoRoomIsMadeLater(t *testing.T) {
	disk := vfs.NewMem()
	disk.SetCapacity(reserveBytes / 2)
	tries := 0
	keepReserve(t.Context(), disk, quiet(), func(_ context.Context, d time.Duration) {
		if used := disk.Used(); used != 0 || d != reserveAgain {
			t.Errorf("half a reserve holds %d bytes for %s", used, d)
		}
		if tries++; tries == 3 {
			disk.SetCapacity(vfs.Unlimited)
		}
	})
	if tries != 3 || disk.Used() != reserveBytes {
		t.Fatalf("after %d tries it holds %d bytes", tries, disk.Used())
	}
}

// noPreallocate is a disk that cannot reserve room but by writing.
type noPreallocate struct{ vfs.FS }

type noPreallocateFile struct{ vfs.File }

func (noPreallocateFile) Preallocate(int64) error { return errors.ErrUnsupported }

func (n noPreallocate) Create(name string) (vfs.File, error) {
	f, err := n.FS.Create(name)
	return noPreallocateFile{f}, err
}

func TestWhereNothingCanBePreallocatedTheReserveIsWritten(t *testing.T) {
	disk := vfs.NewMem()
	if err := makeReserve(noPreallocate{disk}); err != nil || disk.Used() != reserveBytes {
		t.Fatalf("%d bytes, %v", disk.Used(), err)
	}
}
