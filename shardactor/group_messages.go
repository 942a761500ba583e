package shardactor

import (
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// GroupRead is what became of a Fetch. Found says which of the first of its offsets are there for clients; Unfit, that the record after those
// fits into no answer; Failure, why none could be read.
type GroupRead struct {
	Found   []bool
	Unfit   bool
	Failure *wire.Refusal
}

// GroupReply takes answers of consumer groups. Its methods are called from any goroutine and do not block; each token gets exactly one
// AnswerGroup or Deliver, and before a Deliver with records the Fetch that they were found by.
type GroupReply interface {
	// AnswerGroup ends a request that is no poll, or refuses any.
	AnswerGroup(t shardcore.Token, a *groupcore.Answer)
	// Fetch asks for the records at these offsets to be read for a poll, in this order, as far as one answer goes. done is called once, from any goroutine, also when the client is gone.
	// offsets belong to the callee.
	Fetch(t shardcore.Token, offsets []id.Offset, done func(r GroupRead))
	// Drop says that what the last Fetch found is not handed out: the poll waits on.
	Drop(t shardcore.Token)
	// Deliver ends a poll with some of the records that were fetched for it, or with none. records is good until it returns.
	Deliver(t shardcore.Token, records []groupcore.Handed)
	// Flush follows a run of answers, and lets them leave together.
	Flush()
}

// GroupRequest asks something of a consumer group: In is one of groupcore's requests, whose Ask is set here. The group is made when it is
// asked first, and answers requests of one sender in the order they came, but for polls that wait.
type GroupRequest struct {
	Group string // at most wire.MaxNameBytes
	In    groupcore.Input

	reply   GroupReply
	token   shardcore.Token
	passed  bool // it is the group's to answer; the shard's
	settled bool
	fetches uint64 // Fetch effects so far; the group's
}

func (*GroupRequest) shardMessage() {}

// To sets where the answer goes.
func (m *GroupRequest) To(reply GroupReply, t shardcore.Token) { m.reply, m.token = reply, t }

// Settled reports whether the message has got its answer, or a group will see to it; the actor wrapper of the shard asks. Once it was passed
// on, the rest of it is the group's.
func (m *GroupRequest) Settled() bool { return m.passed || m.settled }

// settle notes that the answer is given.
func (m *GroupRequest) settle() {
	if m.settled {
		panic("shardactor: a request of a group was answered twice")
	}
	m.settled = true
}

// refuse answers with a refusal.
func (m *GroupRequest) refuse(f wire.Refusal) {
	m.settle()
	m.reply.AnswerGroup(m.token, &groupcore.Answer{Refusal: &f})
	m.reply.Flush()
}

// GroupGone says that a connection that polled a group is closed, or takes no more records. It takes effect after the requests that were sent
// before it.
type GroupGone struct {
	Group string
	Conn  groupcore.Conn
}

func (*GroupGone) shardMessage() {}

// Settled: there is no answer to it.
func (*GroupGone) Settled() bool { return true }

// groupRequestBytes is what a request of a group costs in memory, in bytes, beside its names.
const groupRequestBytes = 256

// endPoll answers a poll whose connection is closed.
func (m *GroupRequest) endPoll() {
	m.settle()
	m.reply.Deliver(m.token, nil)
	m.reply.Flush()
}

// size is what a request costs wherever it waits, in bytes.
func (m *GroupRequest) size() int {
	n := groupRequestBytes + len(m.Group)
	if p, poll := m.In.(*groupcore.Poll); poll {
		n += len(p.Member)
	}
	return n
}

// visit is what a door is told of it.
func (m *GroupRequest) visit() groupcore.Visit {
	v := groupcore.Visit{Request: m, Bytes: m.size(), Group: m.Group}
	if p, poll := m.In.(*groupcore.Poll); poll {
		v.Poll, v.Conn, v.Wait = true, p.Conn, p.Wait
	}
	return v
}

// groupWrite is a batch that a group has appended to one of its logs, through its shard's core.
type groupWrite struct {
	request
	group string
	log   shardcore.Log
	seq   uint64 // of the group's Persist
	from  *groupChild
	batch batch.Batch
}

// groupIdle says that a group holds nothing that is not in its logs, after so many requests.
type groupIdle struct {
	group   string
	stepped uint64
}

func (*groupWrite) shardMessage() {}
func (*groupIdle) shardMessage()  {}

// Settled: there is no answer to it.
func (*groupIdle) Settled() bool { return true }
