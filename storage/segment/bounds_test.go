package segment

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/vfs"
)

// endless is a file of zeros behind some bytes: as long as anybody says.
type endless struct{ head []byte }

func (e endless) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(e.head)) {
		copy(p, e.head[off:])
	}
	return len(p), nil
}

// matrix A12
func TestA23ADeclaredLengthIsNeverAllocated(t *testing.T) {
	meta := testMeta()
	h := Header{Log: meta.Log, NameHash: meta.NameHash}
	b := BatchHeader{Count: 1, Kind: batch.Records, StoredLength: MaxBody, RawLength: MaxBody}
	head := AppendBatchHeader(AppendHeader(nil, &h), SaltOf(h.Log), &b)
	var before, after runtime.MemStats
	for _, size := range []int64{HeaderSize + BatchHeaderSize + 10, HeaderSize + BatchHeaderSize + MaxBody} {
		runtime.ReadMemStats(&before)
		_, err := Scan(endless{head}, size, &h, nil)
		runtime.ReadMemStats(&after)
		var c *CorruptionError
		if !errors.As(err, &c) || c.Kind != Truncated && c.Kind != BatchChecksum {
			t.Errorf("%d bytes: %v", size, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 2*bufferSize {
			t.Errorf("%d bytes: a scan allocated %d", size, grown)
		}
	}
}

func TestA24ABatchLargerThanAnySegmentIsReadAlone(t *testing.T) {
	disk := vfs.NewMem()
	w := newWriter(t, disk, 1)
	w.create(0)
	w.append(100)
	w.roll()
	w.append(3 * bufferSize)
	w.roll()
	w.append(100)
	w.commit()
	for _, v := range []Verify{VerifyFull, VerifySealed, VerifyLazy} {
		in := w.input(disk)
		in.Verify = v
		p, err := NewPlan(in)
		if err != nil || len(p.Segments) != 3 || p.Segments[1].Batches != 1 {
			t.Fatalf("%s: %+v, %v", v, p, err)
		}
		if why := w.lost(disk, p, w.acked, w.written); why != "" {
			t.Error(why)
		}
	}
}

// broken fails every read with an error of the disk.
type broken struct{}

var errDisk = errors.New("the disk is gone")

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errDisk }
func (broken) Close() error                      { return nil }

func TestAnErrorOfTheDiskIsNoDamage(t *testing.T) {
	w, disk, _ := live(t, 5, 20, false)
	names := w.input(disk).Entries
	for _, bad := range names {
		for _, fail := range []func() (Reader, error){
			func() (Reader, error) { return broken{}, nil },
			func() (Reader, error) { return nil, errDisk },
		} {
			in := w.input(disk)
			open := in.Open
			in.Open = func(name string) (Reader, error) {
				if name == bad.Name {
					return fail()
				}
				return open(name)
			}
			var c *CorruptionError
			if _, err := NewPlan(in); !errors.Is(err, errDisk) || errors.As(err, &c) {
				t.Errorf("%s cannot be read, and the plan answers %v", bad.Name, err)
			}
		}
	}
}

func TestAFileThatGotShorterWhileItIsReadIsNoDamage(t *testing.T) {
	h := Header{Log: testMeta().Log}
	head := AppendHeader(nil, &h)
	_, err := Scan(strings.NewReader(string(head)), HeaderSize+500, &h, nil)
	var c *CorruptionError
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &c) {
		t.Fatalf("the scan answers %v", err)
	}
}

func TestPlansCloseWhatTheyOpen(t *testing.T) {
	for seed := range uint64(5) {
		w, disk, log := live(t, seed, 20, false)
		image := disk.Clone()
		if seed%2 == 1 {
			cutShort(t, w.rnd, image, FileName(w.h.ID), log, nil)
		}
		in := w.input(image)
		in.Repair = Repair(seed % 3)
		if _, err := NewPlan(in); err != nil {
			t.Logf("seed %d refuses: %v", seed, err)
		}
		if n := image.OpenFiles(); n != 0 {
			t.Errorf("seed %d: %d files are open", seed, n)
		}
	}
}

func TestEveryKindHasAName(t *testing.T) {
	for k := Truncated; k <= SnapshotDamaged; k++ {
		if name := k.String(); name == "" || strings.HasPrefix(name, "kind_") {
			t.Errorf("kind %d is called %q", uint8(k), name)
		}
	}
	if got := (SnapshotDamaged + 1).String(); !strings.HasPrefix(got, "kind_") {
		t.Errorf("a kind that does not exist is called %q", got)
	}
	for _, v := range []Verify{VerifyFull, VerifySealed, VerifyLazy} {
		if got, err := ParseVerify(v.String()); err != nil || got != v {
			t.Errorf("%s parses to %s, %v", v, got, err)
		}
	}
	if _, err := ParseVerify("all"); err == nil {
		t.Error("a mode that does not exist parses")
	}
}
