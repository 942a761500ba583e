package groupcore

import (
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Reply is where an answer goes. The core carries it and never looks inside.
type Reply any

// Ask is what every request carries: where its answer goes. Each is answered by exactly one Answer, or Deliver if it is a Poll.
type Ask struct {
	Reply Reply
	Token uint64
}

// Conn is a client's connection to this broker. A newer connection has a higher number; none has 0.
type Conn uint64

// Input is everything that can happen to a group.
//
//sumtype:decl
type Input interface{ input() }

// Poll asks for records. The core does not keep it.
type Poll struct {
	Ask
	Conn Conn
	// Member is the name of a consumer together with who it is, empty for none. It outlives connections.
	Member string
	// Reclaim takes back, the first time on a connection, what the member holds from older ones.
	Reclaim    bool
	Max        uint32        // records; more than wire.MaxGroupRecords are never handed out
	Wait       time.Duration // for how long, if there is nothing now
	Visibility time.Duration // how long the claims stand, 0: the default
}

// Read answers Fetch: the shell has read the records, in order, as many as its budget of bytes allows.
type Read struct {
	Poll uint64
	// Found says of each of the first records of Fetch.Offsets whether there is one for clients at its offset; what is left out was not
	// read, for lack of room in the answer. The core does not keep it.
	Found []bool
	// Unfit says that the record after those is there and fits into no answer: nobody can be handed it, and the group gives up on it.
	Unfit bool
}

// ReadFailed answers Fetch when the log could not be read. The poll is answered with the refusal.
type ReadFailed struct {
	Poll    uint64
	Refusal *wire.Refusal
}

// Ack finishes a record, whoever holds it. The core does not keep it: the shell may use it again.
type Ack struct {
	Ask
	Offset id.Offset
}

// Nack gives a record back.
type Nack struct {
	Ask
	Conn     Conn
	Offset   id.Offset
	HasDelay bool
	Delay    time.Duration // instead of the back-off, if HasDelay
	Attempts uint32        // only if this delivery stands; 0: whichever does
}

// Extend prolongs one delivery.
type Extend struct {
	Ask
	Conn     Conn
	Offset   id.Offset
	Attempts uint32
	Extend   time.Duration // from now
}

// GiveUp makes a record in play a dead letter.
type GiveUp struct {
	Ask
	Offset id.Offset
}

// ListDead asks for at most Max dead letters above After, or from the lowest if not HasAfter.
type ListDead struct {
	Ask
	HasAfter bool
	After    id.Offset
	Max      int
}

// Discard forgets a dead letter.
type Discard struct {
	Ask
	Offset id.Offset
}

// Redrive hands a dead letter out again, as if it never had been.
type Redrive struct {
	Ask
	Offset id.Offset
}

// Seek moves the group, or creates it.
type Seek struct {
	Ask
	Start wire.Start
	IfNew bool // only if there is no group
}

// Describe asks how far the group is.
type Describe struct{ Ask }

// Remove deletes the group.
type Remove struct{ Ask }

// Gone says that a connection is closed: nothing more comes from it. Its waiting polls are answered empty; its claims stand until they
// lapse or their member reclaims them.
type Gone struct{ Conn Conn }

// Tail tells how far the shard's log is: End is where it ends, Committed where what may be handed out does. Committed does not fall.
type Tail struct{ End, Committed id.Offset }

// Trimmed says that the shard's log holds nothing below Base.
type Trimmed struct{ Base id.Offset }

// Persisted completes the Persist of that number.
type Persisted struct{ Seq uint64 }

// Failed completes the Persist of that number: nothing of it is in the log, or it may be. It is written again.
type Failed struct {
	Seq    uint64
	Reason string
}

// Wake says that the moment named by Deadline has come.
type Wake struct{}

// Granted gives room for more records in play, or more that is kept. It answers Core.Wants, with Later if another one follows when there is more.
type Granted struct {
	Of      Budget
	Records int
	Later   bool
}

// Stop ends the group here: waiting polls are answered empty, settlements that are not durable as unknown, and every later request is
// refused. Refusal says why to those.
type Stop struct{ Refusal *wire.Refusal }

func (*Poll) input()      {}
func (Read) input()       {}
func (ReadFailed) input() {}
func (*Ack) input()       {}
func (Nack) input()       {}
func (Extend) input()     {}
func (GiveUp) input()     {}
func (ListDead) input()   {}
func (Discard) input()    {}
func (Redrive) input()    {}
func (Seek) input()       {}
func (Describe) input()   {}
func (Remove) input()     {}
func (Gone) input()       {}
func (Tail) input()       {}
func (Trimmed) input()    {}
func (Persisted) input()  {}
func (Failed) input()     {}
func (Wake) input()       {}
func (Granted) input()    {}
func (Stop) input()       {}
