package store

import (
	"context"

	"github.com/felixd/felixd/controlplane/model"
)

// Feed is how a reader keeps a copy of the metadata without asking again and again: take a Snapshot of each kind, then
// loop over Changes from the snapshot's Seq, with WaitChanges in between. On ErrCompacted, ErrAhead or another Epoch
// start again with snapshots. The position of a reader is the Seq of the last write it knows.
type Feed interface {
	// Snapshot returns every record of one kind in key order together with the position it was taken at.
	Snapshot(ctx context.Context, kind model.Kind) (Snapshot, error)
	// Changes returns the writes of one kind with a Seq above since, oldest first, at most limit of them; limit must be
	// positive. Errors: ErrCompacted when some of them are no longer kept, ErrAhead when since is beyond the last write.
	Changes(ctx context.Context, kind model.Kind, since uint64, limit int) (ChangePage, error)
	// WaitChanges blocks until there is a write of any kind with a Seq above since, and returns the Seq of the last
	// write. It does not poll. It returns ctx.Err() when ctx ends first, and ErrAhead at once when since is beyond the
	// last write.
	WaitChanges(ctx context.Context, since uint64) (uint64, error)
}

// Snapshot is all records of one kind at one instant.
type Snapshot struct {
	Items []model.Record // in key order
	Seq   uint64         // of the last write of any kind the items reflect; 0 before the first
	Epoch string         // identity of the sequence: numbers of different epochs can't be compared
}

// ChangePage is a run of changes of one kind.
type ChangePage struct {
	Items []Change // oldest first, Seq rising; not consecutive, since other kinds share the sequence
	// Seq is the position after this page: what to pass as since next. Where the page was cut by its limit it is the
	// last item's Seq, else that of the last write of any kind.
	Seq   uint64
	Epoch string
}

// Change is one write to one record.
type Change struct {
	Seq    uint64
	Op     Op
	Record model.Record // after the write; for OpDeleted the last state, so that the incarnation that ended is known
}

// Op says what a write did to its record.
type Op string

// The operations, spelled as the feeds spell them.
const (
	OpCreated Op = "created"
	OpUpdated Op = "updated"
	OpDeleted Op = "deleted"
)
