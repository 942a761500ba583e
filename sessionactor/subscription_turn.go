package sessionactor

import (
	"context"

	"github.com/felixd/felixd/sessionactor/sessioncore"
)

// turn is a subscribe whose answer would have to wait for older ones of its stream.
//
// Such a subscription does not begin before: its client cannot know of it, and so reads none of its events. Under the policy block it would
// hold up publishers all the while, and among them, for ever, the one whose answer it waits for. A window's worth of requests
// on a stream bounds how many there are.
type turn struct {
	token sessioncore.Token
	ring  func()
}

// awaitTurn waits until the answer to a request can leave at once. It returns false, and the request may be open, when nobody would
// read the answer any more or ctx has ended.
func (l *lane) awaitTurn(ctx context.Context, t sessioncore.Token, gate Gate) bool {
	l.mu.Lock()
	first, gone := l.core.Turn(t)
	if !first && !gone {
		l.turns = append(l.turns, turn{t, gate.Ring})
	}
	l.mu.Unlock()
	for !first && !gone {
		if !gate.Wait(ctx) {
			return false // the connection is gone, and the lane with it
		}
		l.mu.Lock()
		first, gone = l.core.Turn(t)
		l.mu.Unlock()
	}
	return first
}

// callTurns rings those whose turn has come, or never will. mu is held.
func (l *lane) callTurns() {
	if len(l.turns) == 0 {
		return
	}
	waiting := l.turns[:0]
	for _, x := range l.turns {
		if first, gone := l.core.Turn(x.token); first || gone {
			x.ring()
		} else {
			waiting = append(waiting, x)
		}
	}
	clear(l.turns[len(waiting):])
	l.turns = waiting
}

// grant answers a request whose turn it is; false when nobody reads the answer.
func (l *lane) grant(t sessioncore.Token, a sessioncore.Answer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.core.IsOpen(t) {
		l.settle(t, a)
		l.flush()
	}
	return !l.core.Gone()
}
