package shardactor

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// queueBook is what one worker was told of its group, and so what every later life of the broker has to keep.
type queueBook struct {
	finished map[id.Offset]bool // settled for good, as was answered
	dead     map[id.Offset]bool // listed, as was answered
	maybe    map[id.Offset]bool // asked for, and the outcome is not known
	from     id.Offset          // all below was skipped by a seek that was answered
	sought   []id.Offset        // positions that a seek may have moved the group to since: its outcome is not known
	records  int                // that were acknowledged to their publisher
}

func newQueueBook() *queueBook {
	return &queueBook{finished: map[id.Offset]bool{}, dead: map[id.Offset]bool{}, maybe: map[id.Offset]bool{}}
}

// queue is a world with one group, its worker and its book.
type queue struct {
	*diskWorld
	h    *Handle
	w    *worker
	book *queueBook
}

func newQueue(t *testing.T, mem *vfs.Mem, book *queueBook) *queue {
	d := newDiskWorld(t, mem)
	h := d.streamShard("jobs")
	w := newWorker(t, h, "workers", 1)
	w.waits = func() { d.clock.Advance(100 * time.Millisecond) }
	return &queue{diskWorld: d, h: h, w: w, book: book}
}

// publish adds records; the stream has to take them whatever becomes of the groups.
func (q *queue) publish(n int) {
	q.t.Helper()
	for range n {
		written(q.t.(*testing.T), q.h, id.Offset(q.book.records), fmt.Sprint(q.book.records))
		q.book.records++
	}
}

// asked sends a request to the group. The answer is nil if it was refused; then done says whether it is known that nothing was done.
func (q *queue) asked(in groupcore.Input) (a any, nothing bool) {
	q.t.Helper()
	a = q.w.ask(in)
	x, ok := a.(groupcore.Answer)
	if !ok || x.Refusal == nil {
		return a, false
	}
	f := x.Refusal
	switch f.Retry {
	case wire.RetryOutcomeUnknown:
		return nil, false
	case wire.RetryRetry, wire.RetryAfter:
		return nil, true
	default:
		if f.Code != wire.CodeInvalidRequest { // of a record that a restart has finished in another way
			q.t.Fatalf("%T was refused for good: %+v", in, f)
		}
		return nil, true
	}
}

// work takes records and finishes them in all the ways there are.
func (q *queue) work(r *rand.Rand) {
	q.t.Helper()
	b := q.book
	if r.IntN(12) == 0 {
		q.seek(id.Offset(r.IntN(b.records + 1)))
	}
	a, _ := q.asked(&groupcore.Poll{Conn: 1, Max: 3})
	list, _ := a.([]groupcore.Handed)
	for _, x := range list {
		o := x.Offset
		if b.finished[o] || b.dead[o] {
			q.t.Fatalf("offset %d is handed out again, finished: %v, dead: %v", o, b.finished[o], b.dead[o])
		}
		switch r.IntN(4) {
		case 0, 1:
			if a, nothing := q.asked(&groupcore.Ack{Offset: o}); a != nil {
				b.finished[o] = true
			} else {
				b.maybe[o] = b.maybe[o] || !nothing
			}
		case 2:
			if a, nothing := q.asked(groupcore.GiveUp{Offset: o}); a != nil {
				b.dead[o] = true
			} else {
				b.maybe[o] = b.maybe[o] || !nothing
			}
		case 3:
			q.asked(groupcore.Nack{Conn: 1, Offset: o, Attempts: x.Attempts})
		}
	}
}

// done is the answer to a request that is repeated until it is done: when the clock is moved a job of the disk may seem to hang.
func (q *queue) done(in groupcore.Input) (a any) {
	q.t.Helper()
	q.await(fmt.Sprintf("%T is done", in), func() bool {
		a, _ = q.asked(in)
		return a != nil
	})
	return a
}

func (q *queue) seek(to id.Offset) {
	b := q.book
	a, nothing := q.asked(groupcore.Seek{Start: wire.Start{Kind: wire.StartOffset, Offset: to}})
	switch {
	case a != nil:
		b.from, b.sought = to, nil
		clear(b.finished)
		clear(b.maybe)
		for o := range b.dead {
			b.maybe[o] = true // it is listed all the same, and may be handed out above the new position
		}
		clear(b.dead)
	case !nothing:
		b.sought = append(b.sought, to)
	}
}

// drain takes everything that the group has, and compares it with the book.
func (q *queue) drain(what string) {
	q.t.Helper()
	b, got := q.book, map[id.Offset]bool{}
	for empty := 0; empty < 2; {
		list := q.done(&groupcore.Poll{Conn: 1, Max: 100}).([]groupcore.Handed)
		if empty++; len(list) > 0 {
			empty = 0
		}
		for _, x := range list {
			got[x.Offset] = true
			q.done(&groupcore.Ack{Offset: x.Offset})
		}
		q.clock.Advance(time.Minute) // pauses end
	}
	listed := map[id.Offset]bool{}
	for _, o := range q.done(groupcore.ListDead{Max: 1000}).(groupcore.Answer).Dead {
		listed[o] = true
	}
	if n := len(stored(q.t.(*testing.T), q.h)); n != b.records {
		q.t.Fatalf("%s: %d records are there, %d were acknowledged", what, n, b.records)
	}
	for o := range id.Offset(b.records) {
		certain := len(b.sought) == 0
		switch {
		case (b.finished[o] || o < b.from && certain) && got[o] && certain:
			q.t.Errorf("%s: offset %d was finished, and comes again", what, o)
		case b.dead[o] && (!listed[o] || got[o]) && certain:
			q.t.Errorf("%s: offset %d is a dead letter, listed: %v, comes again: %v", what, o, listed[o], got[o])
		case !got[o] && !b.finished[o] && !b.dead[o] && !b.maybe[o] && !listed[o] && o >= b.from && !b.skipped(o):
			q.t.Errorf("%s: offset %d was finished by nobody, and does not come", what, o)
		}
	}
}

// skipped reports whether a seek of which nobody knows may have finished an offset.
func (b *queueBook) skipped(o id.Offset) bool {
	for _, to := range b.sought {
		if o < to {
			return true
		}
	}
	return false
}

// A sync of one of the groups' logs fails, or a write, at any moment. Publishes and reads of the stream go on; the groups of the shard are
// refused so that it can be tried again, until another process has opened their logs, also by the shard's next incarnation in this one. After
// a kill and after any power cut nothing that was answered is undone, and nothing is finished that nobody finished.
//
// matrix E1, I20, I21
func TestAFailureOfTheGroupsLogsEndsTheGroupsAndNotTheStream(t *testing.T) {
	steps, seeds := []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12}, 3
	if !effort.Full() {
		steps, seeds = []int{1, 4, 6}, 1 // in the making of the log, and when it is open
	}
	hits, poisoned := map[vfs.Call]int64{}, 0
	for _, call := range []vfs.Call{vfs.CallSync, vfs.CallSyncDir, vfs.CallWrite} {
		for _, root := range []string{segment.Groups.Root(), segment.DeadLetters.Root()} {
			for n := range unlessRaced(len(steps)*seeds, 2) {
				from, seed := steps[n%len(steps)], uint64(n/len(steps))
				what := fmt.Sprintf("%s %d of %s fails, seed %d", call, from, root, seed)
				r := rand.New(rand.NewPCG(seed, uint64(from)))
				mem := vfs.NewMem()
				q := newQueue(t, mem, newQueueBook())
				q.publish(5)
				rule := q.fault.Add(vfs.Rule{
					Calls: []vfs.Call{call}, Match: func(name string) bool { return strings.HasPrefix(name, root+"/") },
					From: from, Times: 1, Err: syscall.EIO, Late: r.IntN(2) == 0 && call != vfs.CallWrite,
				})
				for i := 0; i < 12 && rule.Hits() == 0; i++ {
					q.publish(1)
					q.work(r)
				}
				if hits[call] += rule.Hits(); call != vfs.CallWrite && rule.Hits() > 0 {
					q.await(what+": it is heard of", func() bool { return q.events.count("shard_poisoned")+q.events.count("shard_open_failed") > 0 })
					q.refusedAll(what)
					poisoned += q.events.count("shard_poisoned")
				}
				q.publish(3)
				for range 3 {
					q.work(r)
					q.clock.Advance(2 * time.Second) // what failed is written again
				}
				if n := len(stored(t, q.h)); n != q.book.records || !q.h.Serving() {
					t.Fatalf("%s: the stream shows %d of %d records and serves: %v", what, n, q.book.records, q.h.Serving())
				}
				kinds := []string{"a kill", "a power cut", "the worst power cut"}
				if !effort.Full() {
					kinds = kinds[n%3:][:1]
				}
				for _, kind := range kinds {
					image := mem.Clone()
					switch kind {
					case "a power cut":
						image = mem.Crash(r.IntN)
					case "the worst power cut":
						image = mem.CrashHard()
					}
					again := newQueue(t, image, q.book)
					again.drain(what + ", after " + kind)
					again.stop()
				}
				if q.stop(); t.Failed() {
					return
				}
			}
		}
	}
	t.Logf("hits: %v, of open logs %d", hits, poisoned)
	for call, n := range hits {
		if n == 0 {
			t.Errorf("no %s failed", call)
		}
	}
	if poisoned == 0 {
		t.Error("no log failed that was open")
	}
}

// refusedAll checks that all groups of the shard are refused for now, and at once, whoever asks for what.
func (q *queue) refusedAll(what string) {
	q.t.Helper()
	for _, name := range []string{"workers", "others"} {
		for i, in := range []groupcore.Input{
			&groupcore.Poll{Conn: 1, Max: 1, Wait: time.Minute}, &groupcore.Ack{Offset: 1}, groupcore.Nack{Conn: 1, Offset: 1}, groupcore.Describe{},
			groupcore.Seek{Start: wire.Start{Kind: wire.StartEarliest}},
		} {
			w := newWorker(q.t, q.h, name, 1)
			w.begin(shardcore.Token(i), in)
			if f := w.refusal(); f.Code != wire.CodeStorage || f.Retry != wire.RetryAfter || f.RetryAfterMS == 0 {
				q.t.Fatalf("%s: %T of %s: %+v", what, in, name, f)
			}
		}
	}
	if n := q.table.Get(durableStream("jobs", 1, 1).Name); n == nil {
		q.t.Fatalf("%s: the stream is gone", what)
	} else if x, _ := n.Shard(0); x.State != route.Local {
		q.t.Fatalf("%s: the shard resolves to %+v", what, x)
	}
}
