// Package crashtest drives one log through a history that a seed chooses, on a disk in memory, and looks at what a kill or a power cut would
// leave at every single operation on that disk: before it, in the midst of it, and after it. Each such disk that was not seen before is
// opened, compared with what had been acknowledged by then, appended to, and opened again.
//
// It checks:
//
//	(1) each batch that was acknowledged as durable is there, at its offset, byte by byte;
//	(2) what is there is a prefix of what was appended, without a gap, and begins no later than retention was allowed to go;
//	(3) a cut or a reset that was acknowledged stays, and one that was under way is either done or not begun;
//	(4) a generation that was acknowledged as saved is there;
//	(5) opening a second time changes no byte;
//	(6) the next append gets the offset after the last record;
//	(7) a snapshot tells of batches that are there, and one that was acknowledged stays until the log is cut.
package crashtest

import (
	"github.com/felixd/felixd/storage/disklog"
)

// Options choose a campaign.
type Options struct {
	Seed  uint64
	Steps int // of the history
	// Cuts is how many power cuts are tried at each operation, beside a kill, and the worst power cut.
	Cuts int
	// Stride has every so-manyth operation looked at; 0 and 1 are all of them.
	Stride  int
	Fsync   disklog.FsyncMode
	Disrupt bool // the history has cuts, resets, retention, compression and restarts, and not only appends
	Defect  Defect
	Faults  bool // calls of the disk fail now and then, with no space and worse
	// Seen are images that were opened before, by other runs, and are not opened again; this run adds its own. Nil: none.
	Seen map[uint64]bool
}

// Result says what a campaign went through.
type Result struct {
	Operations int // of the disk, at which it was looked at
	Images     int // disks that were made
	Distinct   int // of them, those that were opened
	Truncated  int // of these, those whose tail had to be cut
	Acked      int // batches acknowledged
	Rolls      uint64
	Restarts   int
	Refused    int // appends and others that a failed write refused
	Streamed   int // streamed snapshots acknowledged
	Stale      int // and refused, because the log was cut meanwhile
	Poisoned   int // logs that a failed sync ended
	DirSyncs   int // syncs of directories
	// Kinds is how many of the distinct disks came from each kind of operation: of the history, and of the disk during it.
	Kinds map[string]int
}
