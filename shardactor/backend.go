package shardactor

import (
	"time"

	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// backend is where a shard keeps its logs. All of it is called in the shard's turns, and none of it blocks. What does not complete at once
// completes later: the backend rings, and the shard looks with take.
type backend interface {
	// begin comes first. room is called when there is more room than released has told, look when there is something to take; both at
	// most once until they are answered for.
	begin(room, look func())
	// open opens the log at a generation. Nil: what became of it is to come.
	open(g id.Generation) shardcore.Input
	// save keeps a generation, append claimed batches. They report whether it is done already.
	save(e shardcore.Save) bool
	append(e shardcore.Append) bool
	// admit refuses a commit, before it is claimed, that there is no room for.
	admit(commit *batch.Batch) *wire.Refusal
	// fold takes batches whose records become readable next, and readable shows a log up to end.
	fold(at shardcore.At, log shardcore.Log, batches []*batch.Batch)
	readable(log shardcore.Log, end id.Offset)
	// released is the end of what readers have room for.
	released() id.Offset
	// serving says that the shard began or ceased to serve.
	serving(on bool)
	// take steps the core through what has happened since.
	take(core *shardcore.Core, at shardcore.At)
	// work does what the logs need beside requests, after a turn's effects were performed: it may step the core. It returns when to be
	// called again at the latest; zero leaves that to the next turn.
	work(core *shardcore.Core, at shardcore.At) time.Time
	// reopenAt is when to try again to open the log; zero unless that failed for a reason that may pass.
	reopenAt() time.Time
	// finish comes in the last turn of a shard that did not fail.
	finish(core *shardcore.Core)
}

// files is the backend of a shard with logs on disk, and what is left of it when the shard is gone. Beyond a backend's, these are called by
// the host.
type files interface {
	backend
	// closeReaders ends what readers look at; end writes what is queued and closes the files, setAside takes closed ones out of the way for
	// good. done is called from another goroutine, or at once.
	closeReaders(reason storage.CloseReason)
	end(deleted bool, done func(error))
	setAside(done func(error))
	// keep changes what is kept, and how.
	keep(r disklog.Retention, compress bool)
	// say reports something to the host.
	say(x report)
	label() string
}

// memory is the log of an ephemeral stream's shard: everything completes at once, and nothing outlives the shard.
type memory struct{ log *storage.MemLog }

var _ backend = memory{}

func (m memory) begin(room, _ func()) { m.log.OnRoom(room) }

func (m memory) open(id.Generation) shardcore.Input {
	return shardcore.Recovered{Tails: shardcore.MainTail(m.log.Tail()), Base: m.log.Tail()}
}

// save has nothing to keep: the log dies with its generation.
func (memory) save(shardcore.Save) bool { return true }

func (m memory) append(e shardcore.Append) bool {
	m.log.Append(e.Batches)
	return true
}

// admit takes it like any other: there is no state to be had of an ephemeral stream.
func (memory) admit(*batch.Batch) *wire.Refusal { return nil }

func (memory) fold(shardcore.At, shardcore.Log, []*batch.Batch) {}

func (m memory) readable(_ shardcore.Log, end id.Offset) { m.log.SetReadable(end) }

func (m memory) released() id.Offset              { return m.log.Released() }
func (memory) serving(bool)                       {}
func (memory) take(*shardcore.Core, shardcore.At) {}
func (memory) reopenAt() time.Time                { return time.Time{} }

func (memory) work(*shardcore.Core, shardcore.At) time.Time { return time.Time{} }

func (memory) finish(*shardcore.Core) {}
