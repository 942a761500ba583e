package sessionactor

import (
	"errors"
	"os"
	"time"
)

// A goroutine's stack grows with the deepest call it has made and hardly shrinks while it waits: one that has decoded a request keeps two to
// four times what it takes to wait for the next. So a lane that rests gives its read pump a new goroutine, which has done nothing else yet
// than to wait. A connection looks after those of its lanes that were busy; one that all rest costs nothing.

// restAfter is how long a lane has to be idle before it rests: once without a frame, up to twice. A lane that is in use for a whole look
// never rests, and to change the goroutine of another one costs as much as a small part of its next request.
const restAfter = 150 * time.Millisecond

// activity is what a lane's connection knows of it.
type activity uint8

const (
	resting activity = iota // not among session.awake
	quiet                   // no frame since the last look
	busy
)

// stir notes a frame of an authenticated stream. mu is held.
func (l *lane) stir() {
	if l.activity == resting {
		l.session.stirred(l)
	}
	l.activity = busy
}

// stirred puts a lane, whose lock is held, among those that are looked after.
func (s *session) stirred(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setAwake(append(s.awake, l))
	s.lookLater()
}

// lookLater arms the next look. mu is held.
func (s *session) lookLater() {
	switch {
	case s.looking:
		return
	case s.look == nil:
		s.look = s.opts.Clock.AfterFunc(restAfter, s.lookAround)
	default:
		s.look.Reset(restAfter)
	}
	s.looking = true
}

// lookAround lets lanes rest that were idle since the last look.
func (s *session) lookAround() {
	s.mu.Lock()
	list := s.awake
	s.awake, s.looking = nil, false
	s.mu.Unlock()
	kept := list[:0]
	for _, l := range list {
		if l.calm() {
			kept = append(kept, l)
		}
	}
	clear(list[len(kept):])
	if len(kept) == 0 {
		kept = nil // its room goes, too
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setAwake(append(kept, s.awake...))
	if len(kept) > 0 && !s.over {
		s.lookLater()
	}
}

// setAwake changes who is looked after. mu is held.
func (s *session) setAwake(lanes []*lane) {
	s.awake = lanes
	s.astir.Store(int32(len(lanes)))
}

// calm takes a lane one step towards rest; false says that it needs no further look.
func (l *lane) calm() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.activity--
	if l.activity == quiet && !l.closed {
		return true
	}
	l.activity = resting
	if !l.closed {
		l.core.Rest()
		_ = l.recv.SetReadDeadline(l.session.opts.Clock.Now()) // the read pump returns from where it waits
	}
	return false
}

// askedToRest reports whether a read ended because the lane is to rest, and lets the next one wait again. Only the read pump calls it.
func (l *lane) askedToRest(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || !l.core.Authenticated() {
		return false
	}
	_ = l.recv.SetReadDeadline(time.Time{})
	return true
}

// handOver lets a new goroutine go on with reading. The caller's reads no more.
func (l *lane) handOver() {
	l.fresh = false
	l.framer.Rest()
	if !l.session.pump("read", l.readPump) {
		panic("sessionactor: the pumps of a session were over while one ran")
	}
}
