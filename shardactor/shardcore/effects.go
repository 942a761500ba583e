package shardcore

import (
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Effect is everything a shard can ask for. Effects of one turn are performed in order.
//
//sumtype:decl
type Effect interface{ effect() }

// Recover opens the logs; answered by Recovered or OpenFailed.
type Recover struct{}

// Save persists the generation before any Append of it; answered by Persisted or WriteFailed with the same Seq. Nothing is served
// until it is persisted. Numbers of Save and Append, of all logs, ascend together.
type Save struct {
	Seq        uint64
	Generation id.Generation
}

// Append writes batches at the tail of a log; answered by Persisted or WriteFailed with the same Seq. Batches is empty when a failure
// voided it before it left: then there is nothing to do and nothing to answer.
type Append struct {
	Seq     uint64
	Log     Log
	Batches []*batch.Batch
}

// Readable lets readers of a log see everything below End.
type Readable struct {
	Log Log
	End id.Offset
}

// Fold hands over the commits, and the batches of writes that ask for it, that are about to become readable, in the order of the log: it
// comes right before the Readable that shows them, and before their answers. The list, not the batches, is valid until the next Take.
type Fold struct {
	Log     Log
	Batches []*batch.Batch
}

// AckedLost says that Records were answered at the claim and are not in the log, or may not be.
type AckedLost struct{ Records uint64 }

// Answers ends requests, in this order.
type Answers struct{ List []Answer }

// Answer ends one request. It is done when Refusal and Refused are nil and Again is not set: then the batch begins at Offset, unless
// Unwritten says that none was needed.
type Answer struct {
	Reply   Reply
	Token   Token
	Refusal *wire.Refusal
	// Refused says why a numbered or conditional write was not appended: sequence_gap, unknown_producer, sequence_expired,
	// sequence_reused or offset_mismatch. Nothing was written.
	Refused *wire.RefusedReason
	Offset  id.Offset
	// NoOffset says that the write was answered at the claim: Offset is not told, since the claim may still fail.
	NoOffset bool
	// Unwritten says that the write was done without a record, see Verdict.
	Unwritten bool
	// Again gives the write back, see Verdict: nothing was done.
	Again bool
}

// Gate says whether the data lane is taken (Open) or held back by the mailbox.
type Gate struct{ Open bool }

// Deadline asks for a Wake at that time; the newest Deadline replaces the one before, zero time cancels it.
type Deadline struct{ At time.Duration }

// Serving says that this replica began or ceased to serve, or to show.
type Serving struct {
	// On says that it serves all requests.
	On bool
	// Shows says that what is committed and in memory may be told: On, or the disk does not answer. Nobody else can have changed it meanwhile,
	// and it needs no disk.
	Shows bool
}

// Drained says that nothing claimed is left.
type Drained struct{}

// RoleChanged reports a change of role, for events.
type RoleChanged struct {
	From, To string
	Reason   string
}

func (Recover) effect()     {}
func (Save) effect()        {}
func (Append) effect()      {}
func (Readable) effect()    {}
func (*Answers) effect()    {}
func (Gate) effect()        {}
func (Deadline) effect()    {}
func (Serving) effect()     {}
func (Drained) effect()     {}
func (Fold) effect()        {}
func (AckedLost) effect()   {}
func (RoleChanged) effect() {}
