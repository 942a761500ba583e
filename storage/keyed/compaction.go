package keyed

import "github.com/felixd/felixd/wire/id"

// Policy says when a log is worth a compaction.
type Policy struct {
	Ratio int64 // it has more than so many times the bytes of its live records
	Floor int64 // and more bytes than this
}

// CachePolicy is when a cache's log is compacted.
func CachePolicy() Policy { return Policy{Ratio: 4, Floor: 1 << 20} }

// CounterPolicy is when a log of counters, or of a group's cursor, is compacted: its records are small, and so is what is left of them.
func CounterPolicy() Policy { return Policy{Ratio: 4, Floor: 64 << 10} }

// Due reports whether a log of logBytes, with live ones as in Stats.LogLiveBytes, is to be compacted.
func (p Policy) Due(logBytes, liveBytes int64) bool {
	return logBytes > p.Floor && logBytes/p.Ratio > liveBytes
}

// Effect is what a Compaction asks its driver for, one at a time. The answer is given to Next.
//
//sumtype:decl
type Effect interface{ effect() }

// Input is the answer to an effect.
//
//sumtype:decl
type Input interface{ input() }

type (
	// SealLog asks to end the segment that is being written. Answered by Sealed.
	SealLog struct{}
	// Sealed answers SealLog: everything below Cut is in segments that nothing is written to any more, folded or not yet.
	Sealed struct{ Cut id.Offset }

	// Pause asks for nothing but that others have a turn before Resume, and that the fold has come to Until: an earlier Resume is answered by
	// another Pause.
	Pause struct{ Until id.Offset }
	// Resume answers Pause.
	Resume struct{}

	// ReadValues asks for values that are in the log alone. Answered by Values.
	ReadValues struct{ Places []Place }
	// Values answers ReadValues, in its order. They belong to the compaction.
	Values struct{ List [][]byte }

	// AppendMoved asks to append a batch of kind Records at Base, the tail as Turn told it, so that no change that was claimed since can
	// stand before the copy of what it changed. Answered by Moved, or at once by Stale if the tail is not there any more.
	AppendMoved struct {
		Base  id.Offset
		Count uint32
		Body  []byte // a region of Count records; the driver's from now on
	}
	// Moved answers AppendMoved: the batch is folded, which it is once it is as durable as what clients are told is.
	Moved struct{}
	// Stale answers AppendMoved: something else was claimed first, and nothing was appended. What was to be is asked for again in another turn.
	Stale struct{}

	// FlushLog asks to make everything below Through durable, whatever mode the log is in, and committed if the shard is replicated by quorum.
	// Answered by Flushed.
	FlushLog struct{ Through id.Offset }
	// Flushed answers FlushLog.
	Flushed struct{}

	// RetainFrom asks to remove whole segments below an offset, oldest first and each durably before the next. Answered by Retained.
	RetainFrom struct{ Offset id.Offset }
	// Retained answers RetainFrom, whether all of them are gone or the rest is left to another time.
	Retained struct{}

	// Failed answers any effect: it could not be done. The compaction ends; what it did so far does no harm, and another one begins anew.
	Failed struct{ Err error }

	// Finished is the last effect. Nothing is answered.
	Finished struct{ Result Result }
)

// Turn is what whoever claims offsets knows in the turn in which Next is called.
type Turn struct {
	// Tail is the offset that is claimed next.
	Tail id.Offset
	// Staged reports whether a change of a key has been claimed and is not folded yet: such a key is left for the next round, which begins when
	// that is folded. It must not call the index, and does not keep the key.
	Staged func(key []byte) bool
}

// Place is where a value stands: in the record at Offset, of Key.
type Place struct {
	Key    []byte
	Offset id.Offset
}

// Result is what a compaction did.
type Result struct {
	// Cut is where the log may begin now; 0 if it did not come so far.
	Cut id.Offset
	// Moved is how many records were appended, and Bytes how long their batches are.
	Moved int
	Bytes int64
	// Left is how many entries were found below the cut, or could not be told apart from such, in the last look at all: not 0 means that
	// nothing was removed, and the next compaction finds less to do.
	Left int
	// Err is that of Failed, nil otherwise.
	Err error
}

func (SealLog) effect()     {}
func (Pause) effect()       {}
func (ReadValues) effect()  {}
func (AppendMoved) effect() {}
func (FlushLog) effect()    {}
func (RetainFrom) effect()  {}
func (Finished) effect()    {}

func (Sealed) input()   {}
func (Resume) input()   {}
func (Values) input()   {}
func (Moved) input()    {}
func (Stale) input()    {}
func (Flushed) input()  {}
func (Retained) input() {}
func (Failed) input()   {}
