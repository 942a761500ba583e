package actors

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Spec describes an actor that accepts messages of type M.
//
// The three callbacks run on the actor's goroutine, once for each message they concern, and must not block. Their panics are
// recovered, counted, and make the incarnation's end a Panicked one.
type Spec[M any] struct {
	Name string // unique under the parent; may contain / as in to/n2/main; valid UTF-8 without control characters, at most 512 bytes
	Kind string // metric label and event field, one of few, e.g. "shard"
	New  func() Actor
	// New makes the actor, without side effects: it is called on the actor's goroutine, after Spawn has returned or before.

	Bounds Bounds
	Tenant string // "" runs on the pooled dispatcher; otherwise turns are shared out fairly among tenants

	OnUnstepped   func(m M) // accepted data message that was still queued when a stop was decided: refused, nothing happened
	OnUnanswered  func(m M) // data message that was stepped and may be without answer: unknown. See the package doc
	OnUndelivered func(m M) // accepted completion that will not be stepped: release what it carries
}

// Spawner is who may have children: a *Turn for the acting actor, a *System for top-level actors.
type Spawner interface {
	system() *System
	spawn(b *mailbox) error
}

// spec is a Spec without its message type.
type spec struct {
	new                                      func() Actor
	tenant                                   string
	top                                      bool
	typ                                      any // a nil *M
	onUnstepped, onUnanswered, onUndelivered func(any)
}

// Spawn starts an actor under parent and returns the ref to this incarnation; the ref may be used at once, and the actor's Started turn
// comes before all messages. Errors: ErrBadSpec; ErrNameTaken while an actor of that name is not yet gone, as told by ChildTerminated
// (for top-level actors: by Watch); ErrStopped when the parent's end is decided.
func Spawn[M any](parent Spawner, s Spec[M]) (Ref[M], error) {
	if err := s.check(); err != nil {
		return Ref[M]{}, fmt.Errorf("spawn %q: %w", s.Name, err)
	}
	_, top := parent.(*System)
	b := parent.system().newMailbox(s.Name, s.Kind, s.Bounds)
	b.w.spec = spec{
		new: s.New, tenant: s.Tenant, top: top, typ: (*M)(nil),
		onUnstepped: untyped(s.OnUnstepped), onUnanswered: untyped(s.OnUnanswered), onUndelivered: untyped(s.OnUndelivered),
	}
	if err := parent.spawn(b); err != nil {
		return Ref[M]{}, fmt.Errorf("spawn %q: %w", s.Name, err)
	}
	return Ref[M]{b}, nil
}

func untyped[M any](f func(M)) func(any) {
	if f == nil {
		return nil
	}
	return func(m any) { f(m.(M)) }
}

// check returns all mistakes at once.
func (s Spec[M]) check() error {
	var wrong []error
	if err := checkName(s.Name); err != nil {
		wrong = append(wrong, err)
	}
	if s.Kind == "" {
		wrong = append(wrong, fmt.Errorf("%w: Kind is empty: give a metric label", ErrBadSpec))
	}
	if s.New == nil {
		wrong = append(wrong, fmt.Errorf("%w: New is nil: give a function that makes the actor", ErrBadSpec))
	}
	return errors.Join(append(wrong, s.Bounds.check()...)...)
}

func (b Bounds) check() (wrong []error) {
	if b.DataItems < 0 || b.DataBytes < 0 || b.ControlItems < 0 || b.Cells < 0 {
		wrong = append(wrong, fmt.Errorf("%w: Bounds %+v has a negative bound", ErrBadSpec, b))
	}
	if b.DataItems > 0 && b.DataBytes == 0 {
		wrong = append(wrong, fmt.Errorf("%w: Bounds.DataBytes is 0 with DataItems %d: bound the bytes too", ErrBadSpec, b.DataItems))
	}
	return wrong
}

func checkName(name string) error {
	switch {
	case name == "" || len(name) > nameBytesMax:
		return fmt.Errorf("%w: Name has %d bytes: use 1 to %d", ErrBadSpec, len(name), nameBytesMax)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%w: Name must be valid UTF-8 without control characters", ErrBadSpec)
	case strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.Contains(name, "//"):
		return fmt.Errorf("%w: Name has an empty part between slashes", ErrBadSpec)
	}
	return nil
}

func (t *Turn) system() *System { return t.mailbox().sys }

func (t *Turn) spawn(b *mailbox) error {
	t.mailbox()
	return t.w.spawnChild(b)
}
