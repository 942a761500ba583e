// Package actors runs felixd's actors on protoactor-go. It is the only package that sees protoactor, and it uses little of it: the tree of
// parents and children, the order of a stop (parent is told, children end, parent ends), and the context's state. Everything a client
// can press on is ours: the mailbox, the dispatchers, the panic wall, time.
//
// # Three inlets
//
// A mailbox has three inlets, because three kinds of traffic need three promises:
//
//   - the data lane (Ref.TrySend) takes everything whose rate a client or peer decides. It is bounded in messages and bytes, may refuse, and
//     keeps each sender's order. Requests of one client stream must never travel in two inlets.
//   - the control lane (Ref.Complete) takes completions of what this actor has asked for and reserved room for. It never refuses for want
//     of room: more completions than reserved is a bug, and panics. It comes first in a turn, but leaves a share to waiting data.
//   - cells (Ref.Signal) hold level signals such as progress or routes: one slot per (sender, kind), the newest value wins.
//
// All three close at the moment a stop is decided, by whomever: Ref.Stop, Turn.Stop, a panic, or the parent's stop.
//
// # Turns
//
// An actor is an Actor: one method that gets a Turn, up to 64 messages or 64 KiB of data at a time, so that a shell can step its core through
// all of them and perform one set of effects. Turns of one actor never overlap. A turn must not block: disk and network calls are jobs whose
// completions come back through Complete. The last lane is time: one deadline per actor (ArmWake), on the Clock of the system.
//
// # Every accepted request gets exactly one answer
//
// It is done, refused (nothing happened), or unknown. The actor answers what it steps; for the rest the wrapper keeps the books, which the
// actor can't reach:
//
//   - TrySend returned an error: refused. Nothing else will be heard.
//   - accepted, still queued when a stop is decided: OnUnstepped, once. Nothing happened: refused.
//   - stepped, and the message is a Settler: it enters the ledger until Settled() is true. When the actor panics, the Settlers of
//     the panicking turn and of the ledger that are not settled are given to OnUnanswered, once each, at once: unknown. When
//     the actor stops in order, it may still answer in its Stopping and Stopped turns, and what is left then goes to OnUnanswered.
//   - stepped, and not a Settler: it is a statement, done when its turn ends. In a turn that panics it is given to OnUnanswered too,
//     because nobody can know how far the turn came. A request that is answered should be a Settler, or it can be answered twice.
//
// After a panic an actor must answer nothing more; it gets one last turn, Stopped, to release files and goroutines, with Turn.Failed set.
// The ledger needs no bound of its own: a requester holds a permit (Credit) until its answer, so the ledger never holds more unanswered
// requests than permits were given, plus answered ones it has not looked at yet (see ledger).
//
// # The wrapper
//
// protoactor recovers a panic only in some places: a panic in Stopping or Stopped loses Terminated for ever, and the message that
// panicked is lost without an answer. So every call into an actor or one of its callbacks runs inside a recover of ours, and protoactor never
// sees a panic. The incarnation is then stopped, never restarted or resumed: whoever wants the actor back spawns a new one, from
// its last known good state, when ChildTerminated has come. It comes exactly once per child, with the first panic if there was one, and
// the name is free from then on. An end by runtime.Goexit in an ordinary turn counts as a panic.
//
// A Ref points at an incarnation, not at a name, and refuses for ever once that is gone. Producers have no side effects: protoactor makes the
// wrapper, and Spec.New runs inside the first turn.
//
// # Breaking actors on purpose
//
// System.Faults crashes, pauses or slows a named actor. A crash is a panic in the actor's next turn, inside the wrapper, so that whatever
// follows is what follows a real one. A pause and a slowdown only hold turns back: the mailbox accepts until it is full and then refuses,
// and a held actor occupies no goroutine and no place in a run queue. A stop goes through at once. Faults belong to an incarnation, not to
// a name: they end with it. An actor that nobody has touched pays one comparison with nil, under a lock that is held anyway.
//
// # What of protoactor is off, and why
//
//   - its mailboxes: Unbounded has no bound, Bounded lets the sender spin, BoundedDropping loses silently and then spins; all drop what is
//     queued at a stop without a word.
//   - its default dispatcher: a new goroutine per wake costs 2 us, a kept one 0.3 us.
//   - Restart, Resume, escalation, stash, receive timeouts, futures, middleware, event stream, metrics, logger: races, leaks, or costs on
//     the hot path, and none is needed. Its Watch is replaced by ours, which can't deliver twice nor hit a namesake.
//
// # Dispatchers
//
// Actors without a tenant run on a pool of kept goroutines. Actors with a Tenant run on the fair dispatcher: deficit round robin over
// tenants, one turn per dispatch, charged in bytes. Both sit on one Scheduler, which a simulation may replace to drive the same mailbox and
// wrapper from one goroutine; time comes from a Clock; nothing here uses randomness.
package actors
