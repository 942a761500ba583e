package actors

import (
	"context"
	"log/slog"
	"time"
)

// Event is something an operator may want to know, as a value. Text, counters and a simulation's trace are readers of the same value.
type Event interface {
	// EventName is a constant snake_case name: one of few, since it labels a counter.
	EventName() string
	// Level is how loud its text is.
	Level() slog.Level
	// Attrs are its fields.
	Attrs() []slog.Attr
}

// EventSink takes events. Emit must not block and is called from any goroutine. A sink that panics loses that event.
type EventSink interface{ Emit(Event) }

// SlogSink writes each event as one record of logger.
func SlogSink(logger *slog.Logger) EventSink { return slogSink{logger} }

type slogSink struct{ logger *slog.Logger }

func (s slogSink) Emit(e Event) {
	s.logger.LogAttrs(context.Background(), e.Level(), e.EventName(), e.Attrs()...)
}

// DiscardEvents is the sink that keeps nothing; events are still counted.
func DiscardEvents() EventSink { return discardSink{} }

type discardSink struct{}

func (discardSink) Emit(Event) {}

// ActorPanicked is emitted for every recovered panic of an actor or one of its callbacks.
type ActorPanicked struct {
	Path  string
	Kind  string
	Panic *PanicInfo
}

// EventName is actor_panicked.
func (ActorPanicked) EventName() string { return "actor_panicked" }

// Level is error: an own invariant was broken.
func (ActorPanicked) Level() slog.Level { return slog.LevelError }

// Attrs has the actor, where it was, the panic's value and its stack.
func (e ActorPanicked) Attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("actor", e.Path), slog.String("kind", e.Kind), slog.String("during", e.Panic.During),
		slog.String("panic", e.Panic.Text), slog.String("stack", string(e.Panic.Stack)),
	}
}

// ActorStopped is emitted once at the end of each incarnation.
type ActorStopped struct {
	Path      string
	Kind      string
	Reason    Reason
	Unstepped int // data messages given to OnUnstepped
	Unknown   int // data messages given to OnUnanswered
}

// EventName is actor_stopped.
func (ActorStopped) EventName() string { return "actor_stopped" }

// Level is debug: stopping is ordinary.
func (ActorStopped) Level() slog.Level { return slog.LevelDebug }

// Attrs has the actor, the reason and how its last requests were settled.
func (e ActorStopped) Attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("actor", e.Path), slog.String("kind", e.Kind), slog.String("reason", e.Reason.String()),
		slog.Int("unstepped", e.Unstepped), slog.Int("unknown", e.Unknown),
	}
}

// MailboxFull is emitted at the first refusal of an actor and then at most every 10 s.
type MailboxFull struct {
	Full    FullError // the refusal that caused the event
	Kind    string
	Refused uint64 // refusals of this actor since its last event, this one included
}

// EventName is mailbox_full.
func (MailboxFull) EventName() string { return "mailbox_full" }

// Level is warn: senders are being told no.
func (MailboxFull) Level() slog.Level { return slog.LevelWarn }

// Attrs has the actor, what it holds and may hold, and the number of refusals.
func (e MailboxFull) Attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("actor", e.Full.Path), slog.String("kind", e.Kind), slog.Int("items", e.Full.Items), slog.Int("bytes", e.Full.Bytes),
		slog.Int("limit_items", e.Full.LimitItems), slog.Int("limit_bytes", e.Full.LimitBytes), slog.Uint64("refused", e.Refused),
	}
}

// FaultInjected is emitted for each use of Faults on a live actor, before the effect.
type FaultInjected struct {
	Path string
	Kind string
	Do   FaultAction
	For  time.Duration // how long a pause or slowdown lasts; 0 for the others
	By   time.Duration // what each turn of a slowed actor waits; 0 for the others
}

// EventName is fault_injected.
func (FaultInjected) EventName() string { return "fault_injected" }

// Level is warn: what follows is asked for, and looks like the real thing.
func (FaultInjected) Level() slog.Level { return slog.LevelWarn }

// Attrs has the actor, what was done to it, and for how long.
func (e FaultInjected) Attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("actor", e.Path), slog.String("kind", e.Kind), slog.String("do", string(e.Do)),
		slog.Duration("for", e.For), slog.Duration("by", e.By),
	}
}
