package disklog

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/segment"
)

// FsyncMode says when appended bytes are made durable, and so what Notify.Persisted means. In all modes they survive the end of the
// process, because the page cache belongs to the system.
type FsyncMode uint8

const (
	// OnCommit reports an append after the device has it. Nothing that was reported is lost with the machine's power.
	OnCommit FsyncMode = iota
	// Periodic reports an append when the system has it, and syncs each FsyncInterval: a power cut loses at most what came since.
	Periodic
	// None reports an append when the system has it, and syncs when a segment is sealed and when the log is closed or goes idle.
	None
)

var fsyncNames = [...]string{OnCommit: "on_commit", Periodic: "periodic", None: "none"}

func (m FsyncMode) String() string {
	if int(m) < len(fsyncNames) {
		return fsyncNames[m]
	}
	return fmt.Sprintf("fsync_mode_%d", uint8(m))
}

// ParseFsyncMode reads a mode as it is written in settings: on_commit, periodic or none.
func ParseFsyncMode(s string) (FsyncMode, error) {
	for m, name := range fsyncNames {
		if s == name {
			return FsyncMode(m), nil
		}
	}
	return 0, fmt.Errorf("parse fsync mode %q: it is one of on_commit, periodic, none", s)
}

// VerifyMode says how much of a log is read when it is opened, see package segment. The newest segment is always read whole.
type VerifyMode = segment.Verify

// The modes, see package segment.
const (
	VerifyFull   = segment.VerifyFull
	VerifySealed = segment.VerifySealed
	VerifyLazy   = segment.VerifyLazy
)

// Options are the same for all logs of a Store. Zero values mean the defaults named here.
type Options struct {
	// SegmentBytes is where a segment ends: an append that would make it longer begins the next one. One that is larger by itself gets
	// a segment of its own. Smaller segments give retention finer steps and recovery less to read, for more files. Default 256 MiB.
	SegmentBytes int64
	// IndexSpacing is how many bytes of a segment lie between two entries of its index, so how far a read scans for its first
	// batch; 24 bytes of memory per entry while a segment is in use. Default 4096.
	IndexSpacing int
	Fsync        FsyncMode
	// FsyncInterval is the longest that bytes stay unsynced in Periodic. Default 250 ms.
	FsyncInterval time.Duration
	// Preallocate reserves room ahead of the writes, without changing a file's size.
	Preallocate bool
	Verify      VerifyMode
	// OpenSealed is how many segments the store keeps open for readers. Default 256.
	OpenSealed int
	// IdleAfter is how long after its last write a log gives back its files; at most twice that. Default 10 s.
	IdleAfter time.Duration
	// ReadBytes is how much one read of a file takes. Bodies of one page share it, so that it is also what a reader that keeps a small
	// batch may keep alive. Default 256 KiB.
	ReadBytes int
	// UnsyncedBytes is how much Periodic lets be written while a sync hangs; further appends stay queued. 64 MiB by default: what a shard
	// may have claimed and not completed.
	UnsyncedBytes int64
	// Exec runs all file work. Required.
	Exec diskpool.Executor
	// SyncApart has a sync that follows its write be a job of its own. Without it the job that wrote goes on to sync, which spares a lone
	// append a trip through a queue; with it a simulation can stop the world between the two. Always so with a *diskpool.Manual.
	SyncApart bool
	// Slots bounds the reads of clients. Nil = no bound.
	Slots *diskpool.ReadSlots
	// Rand draws the ids of new logs. Default: the system's.
	Rand func() [16]byte
	// Holder is written into the lock file for whoever finds it taken, for example "pid 4711, started ...".
	Holder string
	// Counters are where this store counts; nil = its own.
	Counters *Counters
}

// Below these a setting only costs: a segment must hold its own header and footer many times over, and an index its entries.
const (
	segmentBytesMin = 4 << 10
	indexSpacingMin = 64
)

func (o *Options) fill() {
	defaultTo(&o.SegmentBytes, 256<<20)
	defaultTo(&o.IndexSpacing, 4096)
	defaultTo(&o.FsyncInterval, 250*time.Millisecond)
	defaultTo(&o.OpenSealed, 256)
	defaultTo(&o.IdleAfter, 10*time.Second)
	defaultTo(&o.ReadBytes, 256<<10)
	defaultTo(&o.UnsyncedBytes, 64<<20)
	o.SegmentBytes = max(o.SegmentBytes, segmentBytesMin)
	o.IndexSpacing = max(o.IndexSpacing, indexSpacingMin)
	if _, steps := o.Exec.(*diskpool.Manual); steps {
		o.SyncApart = true
	}
	if o.Rand == nil {
		o.Rand = randomID
	}
	if o.Counters == nil {
		o.Counters = new(Counters)
	}
}

func defaultTo[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

func randomID() (b [16]byte) {
	rand.Read(b[:]) // never fails since Go 1.24
	return b
}

// ParseVerifyMode reads a mode as it is written in settings: full, sealed or lazy.
func ParseVerifyMode(s string) (VerifyMode, error) { return segment.ParseVerify(s) }
