package sessionactor

import (
	"time"

	"github.com/felixd/felixd/internal/stages"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// sample is the one request of a lane that is being timed. Its shard notes how long it was queued; the rest is noted here.
type sample struct {
	state sampleState
	path  stages.Path
	token sessioncore.Token
	wire  time.Duration  // own work on the bytes so far
	at    stages.Instant // when own work began, or when the answer could leave; 0 while neither is so
}

type sampleState uint8

const (
	noSample sampleState = iota
	sampleOpen
	// sampleAnswered: the answer exists, and waits for an older request's.
	sampleAnswered
	// sampleReady: the answer may leave.
	sampleReady
	// sampleTaken: the write pump has it in hands.
	sampleTaken
)

// beginSample begins to time the next request, if it is one in so many; 0 says that it is not. mu is held for this and what follows.
func (l *lane) beginSample() stages.Instant {
	if l.sample.state != noSample || !l.sampler.Take(l.session.opts.Timings) {
		return 0
	}
	return l.session.opts.Timings.Now()
}

// sampleRequest times the request that was made of the frame whose work began at that instant.
func (l *lane) sampleRequest(r sessioncore.Request, began stages.Instant) {
	if began == 0 || r.Do != sessioncore.Publish && r.Do != sessioncore.Ask {
		return
	}
	path := stages.Publish
	switch r.Kind {
	case wire.KindPublish:
	case wire.KindCachePut, wire.KindCacheGet, wire.KindCacheDelete, wire.KindCachePutIf, wire.KindCacheDeleteIf, wire.KindCounterAdd, wire.KindCounterGet:
		path = stages.Cache
	default:
		return
	}
	l.sample = sample{state: sampleOpen, path: path, token: r.Token, at: began}
}

// sampleSent ends own work on a request that is handed to its shard. It returns the instant, for the shard to count from; 0 if the
// request is not timed.
func (l *lane) sampleSent(t sessioncore.Token) stages.Instant {
	s := &l.sample
	if s.state != sampleOpen || s.token != t {
		return 0
	}
	now := l.session.opts.Timings.Now()
	s.wire += time.Duration(now - s.at)
	s.at = 0
	return now
}

// outcome settles a request, which encodes its answer.
func (l *lane) outcome(t sessioncore.Token, a sessioncore.Answer) {
	s := &l.sample
	if s.state != sampleOpen || s.token != t {
		l.core.Settle(t, a)
		return
	}
	timings := l.session.opts.Timings
	if s.at == 0 {
		s.at = timings.Now()
	}
	silent := l.core.Silent(t)
	l.core.Settle(t, a)
	timings.Took(s.path, stages.Wire, s.wire+timings.Since(s.at))
	if s.state = sampleAnswered; silent || l.send == nil {
		*s = sample{}
	}
}

// sampleReadiness begins to count how long the timed answer waits for its client, once it waits for no older one.
func (l *lane) sampleReadiness() {
	if s := &l.sample; s.state == sampleAnswered && l.core.HasLeft(s.token) {
		s.state, s.at = sampleReady, l.session.opts.Timings.Now()
	}
}

// sampleTake says that the write pump takes all answers that may leave.
func (l *lane) sampleTake() {
	if l.sample.state == sampleReady {
		l.sample.state = sampleTaken
	}
}

// sampleLeft says that answers have left: those that were ready, or those that the write pump had in hands.
func (l *lane) sampleLeft(which sampleState) {
	if s := &l.sample; s.state == which {
		l.session.opts.Timings.Took(s.path, stages.Transport, l.session.opts.Timings.Since(s.at))
		*s = sample{}
	}
}
