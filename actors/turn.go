package actors

import "time"

// Lifecycle tells what kind of turn this is.
type Lifecycle uint8

const (
	// None is an ordinary turn.
	None Lifecycle = iota
	// Started is the first turn of an incarnation.
	Started
	// Stopping: a stop is decided; children still live. Not delivered after a panic.
	Stopping
	// Stopped is the last turn: all children are gone. After a panic it is delivered too, to release resources and nothing else.
	Stopped
	// lifecycleEnd bounds the values.
	lifecycleEnd
)

// String names the lifecycle turn.
func (l Lifecycle) String() string {
	if l >= lifecycleEnd {
		return "unknown"
	}
	return [lifecycleEnd]string{"none", "started", "stopping", "stopped"}[l]
}

// Turn is one activation of an actor: up to 64 messages or 64 KiB of data, or one lifecycle step. It and every slice it returns are
// valid during Receive only; using it later panics or shows another turn. The messages themselves may be kept.
type Turn struct {
	w         *wrapper // nil outside Receive
	lifecycle Lifecycle
	now       time.Time
	woken     bool
	view      []any // what the actor sees: a copy, so that it can't disturb the wrapper's books
	control   []any
	data      []any
	bytes     int
	cells     []Cell
	ended     []Terminated
	sys       any  // one of protoactor's messages, handled before anything else
	rang      bool // the timer fired since the last turn
	crash     bool // the turn is to panic, as if the actor did
}

// Lifecycle is None for an ordinary turn. Another turn carries no messages and no cells.
func (t *Turn) Lifecycle() Lifecycle {
	t.mailbox()
	return t.lifecycle
}

// Messages are the control messages and then the data messages of this turn, each lane in order.
func (t *Turn) Messages() []any {
	t.mailbox()
	return t.view
}

// Cells are the level signals set since the last turn, newest values only, in the order their cells were first set.
func (t *Turn) Cells() []Cell {
	t.mailbox()
	return t.cells
}

// ChildTerminated lists the children and watched actors that are gone: each incarnation exactly once. While the actor itself is
// stopping, the children still come, each in a turn with Lifecycle None; what was only watched does not.
func (t *Turn) ChildTerminated() []Terminated {
	t.mailbox()
	return t.ended
}

// Now is the instant the turn began.
func (t *Turn) Now() time.Time {
	t.mailbox()
	return t.now
}

// Wake reports whether the deadline armed by ArmWake has passed. It is reported once; arm again for more.
func (t *Turn) Wake() bool {
	t.mailbox()
	return t.woken
}

// ArmWake sets the actor's one deadline, replacing an earlier one. The clock's timer is touched only when the deadline moves
// earlier; a timer that then rings too early costs no turn.
func (t *Turn) ArmWake(at time.Time) {
	t.mailbox()
	t.w.arm(at)
}

// DisarmWake forgets the deadline.
func (t *Turn) DisarmWake() {
	t.mailbox()
	t.w.deadline = time.Time{}
}

// Stop stops the actor after this turn. Its mailbox refuses from this moment on.
func (t *Turn) Stop() { t.mailbox().stop() }

// Failed is the first panic of this incarnation, nil without one. Only a Stopped turn can see one: the core is in an unknown state, its
// unanswered requests have been given to OnUnanswered, and the actor may only release resources.
func (t *Turn) Failed() *PanicInfo {
	t.mailbox()
	return t.w.failure
}

// Watch makes r's end appear once in ChildTerminated of this actor, at once if it is gone already. Watching twice, or an own child,
// or itself, changes nothing.
func (t *Turn) Watch(r Watchable) {
	t.mailbox()
	t.w.watch(r.box())
}

// Unwatch undoes Watch: if the end has not been seen in a turn yet, it may still be seen once.
func (t *Turn) Unwatch(r Watchable) {
	t.mailbox()
	t.w.unwatch(r.box())
}

// Emit reports an event.
func (t *Turn) Emit(e Event) { t.mailbox().sys.Emit(e) }

// Self tells who is acting.
func (t *Turn) Self() Self { return Self{t.mailbox()} }

// Self is the identity of an incarnation. Comparable; valid also after the turn.
type Self struct{ b *mailbox }

// Path is the place in the tree, like shards/3/log.
func (s Self) Path() string { return s.b.path }

// Name is the name under the parent.
func (s Self) Name() string { return s.b.name }

// ID is the incarnation's number, unique in its system.
func (s Self) ID() uint64 { return s.b.id }

// Kind is the metric label.
func (s Self) Kind() string { return s.b.kind.name }

// Clock is the system's clock.
func (s Self) Clock() Clock { return s.b.sys.clock }

// mailbox is the acting actor's; it panics outside Receive.
func (t *Turn) mailbox() *mailbox {
	if t.w == nil {
		panic("actors: a Turn was used after Receive returned: copy what is needed later")
	}
	return t.w.b
}

// clear empties t for the next turn, so that it pins nothing.
func (t *Turn) clear() {
	clear(t.view)
	clear(t.control)
	clear(t.data)
	clear(t.cells)
	clear(t.ended)
	*t = Turn{view: t.view[:0], control: t.control[:0], data: t.data[:0], cells: t.cells[:0], ended: t.ended[:0]}
}
