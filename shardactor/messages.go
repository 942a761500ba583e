package shardactor

import (
	"github.com/felixd/felixd/internal/stages"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Message is everything the data lane of a Shard accepts.
//
//sumtype:decl
type Message interface{ shardMessage() }

// Answer is the outcome of one message.
type Answer struct {
	// Refusal is nil when it was done. A refusal of class outcome_unknown says that it may have been.
	Refusal *wire.Refusal
	// Refused, when not nil, is why a numbered or conditional publish was not appended: nothing was written. Refusal is nil then.
	Refused *wire.RefusedReason
	// Offset is where the batch begins, unless NoOffset says that nobody knows yet: it was answered at the claim.
	Offset   id.Offset
	NoOffset bool
	// Found and Value are what a delete removed. Value is shared, not to be changed.
	Found bool
	Value []byte
	// Applied says that the condition of a conditional cache write held. Version is then that of what it wrote; otherwise that of what
	// the key has. HasVersion is false if there is none: the key has no live value.
	Applied    bool
	HasVersion bool
	Version    id.Offset
	// Sum is what a counter holds with what was added.
	Sum int64
	// Caused says that the shard failed while it was busy with this very request, and not with another of the same turn.
	Caused bool
}

// Reply takes answers. Its methods are called from any goroutine, each token exactly once; Flush follows a run of Answer
// calls and lets them leave together.
type Reply interface {
	Answer(t shardcore.Token, a Answer)
	Flush()
}

// Publish asks for a batch to be appended to a stream's log. Answered by exactly one Answer.
//
// The batch, its bytes included, belongs to the shard once the message was accepted.
type Publish struct {
	request
	Batch batch.Batch
	// HasExpected and Expected make it conditional: it is appended only if it begins at Expected.
	HasExpected bool
	Expected    id.Offset
	// AtClaim asks for the answer when its offsets are claimed, without them, instead of when it is safe.
	AtClaim bool
}

// CachePut asks for a key to be set. Answered by exactly one Answer; its Offset is the version of the value.
type CachePut struct {
	request
	Key       string
	Value     []byte // belongs to the shard once accepted
	TTLMillis uint64
	HasTTL    bool

	batch batch.Batch
}

// CachePutIf is a CachePut under a condition: the key has a live value of Version, or none at all unless HasVersion is set. A condition
// that does not hold is an answer, see Answer.Applied.
type CachePutIf struct {
	request
	Key        string
	Value      []byte // belongs to the shard once accepted
	TTLMillis  uint64
	HasTTL     bool
	HasVersion bool
	Version    id.Offset

	batch  batch.Batch
	judged Answer // the last time
}

// CacheDelete asks for a key to be removed. Answered by exactly one Answer, with the value that was there.
type CacheDelete struct {
	request
	Key string

	batch   batch.Batch
	judged  Answer
	removed removed
}

// CacheDeleteIf is a CacheDelete under the condition that the key has a live value of Version. It does not answer the value.
type CacheDeleteIf struct {
	request
	Key     string
	Version id.Offset

	batch  batch.Batch
	judged Answer
}

// CounterAdd adds to a counter. Answered by exactly one Answer, with the sum.
type CounterAdd struct {
	request
	Key   string
	Delta int64

	batch  batch.Batch
	judged Answer
}

func (*CachePutIf) shardMessage()    {}
func (*CacheDeleteIf) shardMessage() {}
func (*CounterAdd) shardMessage()    {}
func (*Publish) shardMessage()       {}
func (*CachePut) shardMessage()      {}
func (*CacheDelete) shardMessage()   {}

// roomMade says that readers have room for something whose answer waits for that. It is a completion: the log sends one for each time
// it was asked and had to tell of answers that wait.
type roomMade struct{}

func (*roomMade) shardMessage() {}

// diskNews says that there is news of the log's files: at most one at a time, see news.
type diskNews struct{}

func (*diskNews) shardMessage() {}

// request is what every message carries: where its answer goes and whether it left. Only the shard, and after its death
// the wrapper's ledger, touch it.
type request struct {
	Reply Reply
	Token shardcore.Token
	// Sent is when the message was sent, if it is timed.
	Sent stages.Instant

	write   shardcore.Write
	settled bool
	// result is what is answered beside the offset, as it was judged; nil for nothing. versioned says that the offset is a version to be
	// answered. again is called when the core gives the write back.
	result    *Answer
	versioned bool
	again     func()
	// later takes over an answer of what is done, and settles it when it is complete; nil for nothing.
	later func(Answer)
	// done is called before the answer leaves; nil for nothing.
	done func()
}

// Settled reports whether the message has got its answer; the actor wrapper asks when a shard dies.
func (r *request) Settled() bool { return r.settled }

// To sets where the answer goes.
func (r *request) To(reply Reply, t shardcore.Token) { r.Reply, r.Token = reply, t }

// settle gives the answer. A second answer to one request is a broken invariant.
func (r *request) settle(a Answer) {
	if r.settled {
		panic("shardactor: a request was answered twice")
	}
	r.settled = true
	r.Reply.Answer(r.Token, a)
}

// Size is what a message costs in the mailbox, in bytes.
func Size(m Message) int {
	switch m := m.(type) {
	case *Publish:
		return m.Batch.Size()
	case *CachePut:
		return reading.RecordSize(reading.OpPut, len(m.Key), len(m.Value)) + batch.Overhead
	case *CacheDelete:
		return reading.RecordSize(reading.OpDelete, len(m.Key), 0) + batch.Overhead
	case *CachePutIf:
		return reading.RecordSize(reading.OpPut, len(m.Key), len(m.Value)) + batch.Overhead
	case *CacheDeleteIf:
		return reading.RecordSize(reading.OpDelete, len(m.Key), 0) + batch.Overhead
	case *GroupRequest:
		return m.size()
	case *GroupNames:
		return groupRequestBytes
	case *GroupGone:
		return len(m.Group) + groupRequestBytes
	case *CounterAdd:
		return reading.CounterRecordSize(len(m.Key)) + batch.Overhead
	}
	panic("shardactor: a message of unknown type")
}

// Handle is a local shard as its users see it: a ref for what changes it, and views for what only reads.
type Handle struct {
	Number id.ShardID
	Ref    Ref
	// Log is what subscriptions read.
	Log storage.Reader
	// Durable says that what is acknowledged outlives the node. History is all of it, and State what its commits say of entities; both
	// are nil on an ephemeral shard.
	Durable bool
	History storage.History
	State   *reading.State
	// Cache is a cache's reading; nil on a stream.
	Cache reading.CacheView
	// Keyed is the same of a log-backed one, for watches, and Counters what it counts; nil on a stream and in memory.
	Keyed    *reading.KeyedCache
	Counters *reading.Counters
	// right says what the shard may do at the moment.
	right *right
}

// Serving reports whether the shard may serve reads now: the right to serve is an atomic, read at the claim and again
// at the release.
func (h *Handle) Serving() bool { return h.right.may.Load()&mayServe != 0 }

// Showing is the same for what is committed and in memory: that is told while the disk does not answer, too.
func (h *Handle) Showing() bool { return h.right.may.Load()&mayShow != 0 }
