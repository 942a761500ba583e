package actors

// Around returns inner with before and after called around each of its turns, lifecycle turns included: the way a simulation watches an
// actor, or makes it panic at a chosen moment. Both run in the turn, under the same protection; after is not called when before or inner
// has panicked. Either may be nil.
func Around(inner Actor, before, after func(t *Turn)) Actor {
	return &around{inner: inner, before: before, after: after}
}

type around struct {
	inner         Actor
	before, after func(t *Turn)
}

// Receive is one turn of inner.
func (a *around) Receive(t *Turn) {
	if a.before != nil {
		a.before(t)
	}
	a.inner.Receive(t)
	if a.after != nil {
		a.after(t)
	}
}

// Unwrap is the actor inside.
func (a *around) Unwrap() Actor { return a.inner }
