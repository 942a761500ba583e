package actors

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Bounds are the bounds of a mailbox.
type Bounds struct {
	DataItems    int // data messages queued; 0 means the actor has no data lane and refuses all
	DataBytes    int // bytes of data messages queued, as announced by senders; must be positive when DataItems is
	ControlItems int // completions queued: the room the actor reserves with what it sends; 0 means it expects none
	Cells        int // distinct (sender, kind) pairs waiting at a time; 0 means 1024
}

// mailbox is the inbox of one incarnation and, to protoactor, its actor.Mailbox. Senders touch only the first group of fields, under
// mu; the goroutine that runs the actor owns out and the wrapper. At most one goroutine runs it: scheduled says whether one does or
// is about to.
//
//  1. items and bytes count the data messages accepted and not yet handed to a turn; only accepting, under mu, raises them.
//  2. once closed, nothing enters data, control, cells or notices any more.
//  3. scheduled is false only if there is no work, the mailbox is not started, or a fault holds the work back; then the fault's timer
//     is armed for the instant at which it lets go.
type mailbox struct {
	mu        sync.Mutex
	in        queue // data lane, the half senders fill
	control   queue
	cells     []Cell
	cellIndex map[cellKey]int // built when cells outgrows cellsKept
	notices   []Terminated    // of watched actors: bounded by the number of watches
	sysq      []any           // protoactor's own messages: a few per lifetime and child
	watchers  map[watcher]uint64
	watchSeq  uint64
	full      fullNotes
	started   bool
	scheduled bool
	closed    bool   // a stop is decided
	gone      bool   // the incarnation has ended
	wake      bool   // the timer has fired
	fault     *fault // what was injected and is not over; nil almost always
	suspended bool   // asked for by protoactor; owned by the running goroutine

	items, bytes atomic.Int64
	bounds       Bounds

	out        queue // data lane, the half being emptied
	w          wrapper
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher
	runFn      func()

	sys        *System
	kind       *kind
	path, name string
	id         uint64
	kindPrev   *mailbox
	kindNext   *mailbox
	tenant     *tenant  // set with Spec.Tenant
	runNext    *mailbox // in the tenant's run queue, under the fair dispatcher's lock
}

// post accepts or refuses a data message.
func (b *mailbox) post(m any, bytes int) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		b.kind.refusedStops.Inc()
		return ErrStopped
	}
	items, held := b.items.Load(), b.bytes.Load()
	if items >= int64(b.bounds.DataItems) || (items > 0 && int64(bytes) > int64(b.bounds.DataBytes)-held) {
		return b.refuse(int(items), int(held))
	}
	b.in.push(&b.sys.chunks, item{m, bytes})
	b.items.Add(1)
	b.bytes.Add(int64(bytes))
	b.unlockAndWake()
	return nil
}

// complete accepts a control message.
func (b *mailbox) complete(m any) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		b.kind.refusedStops.Inc()
		return ErrStopped
	}
	if b.control.n >= b.bounds.ControlItems {
		b.mu.Unlock()
		panic(fmt.Sprintf("actors: %s has reserved room for %d completions and gets one more, a %T: someone completes what was never asked, or twice",
			b.path, b.bounds.ControlItems, m))
	}
	b.control.push(&b.sys.chunks, item{msg: m})
	b.unlockAndWake()
	return nil
}

// notice queues that a watched actor is gone.
func (b *mailbox) notice(n Terminated) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	b.notices = append(b.notices, n)
	b.unlockAndWake()
}

// timerFired is the clock's call.
func (b *mailbox) timerFired() {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	b.wake = true
	b.unlockAndWake()
}

// stop decides the end: from here on everything is refused. Only the first call has an effect.
func (b *mailbox) stop() {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	b.closed = true
	b.sysq = append(b.sysq, &actor.Stop{})
	b.unlockAndWake()
}

// isClosed reports whether a stop is decided.
func (b *mailbox) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// unlockAndWake releases mu and schedules the actor if nobody runs it. The caller has just added work, which only a fault
// holds back, or lifted a fault; a wake without work ends at once.
func (b *mailbox) unlockAndWake() {
	wake := b.started && !b.scheduled && (b.fault == nil || len(b.sysq) > 0 || b.ready())
	if wake {
		b.scheduled = true
	}
	b.mu.Unlock()
	if wake {
		b.dispatcher.Schedule(b.runFn)
	}
}
