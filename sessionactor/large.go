package sessionactor

import (
	"context"
	"sync"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage"
)

// LargePages is a node's budget for what event streams have in hand that is larger than usual: records and values that were read from disk for one
// reader, and frames that are made for one. Up to 64 KiB each are not counted. Safe for concurrent use; the decisions are sessioncore's.
type LargePages struct {
	mu    sync.Mutex
	core  *sessioncore.Large
	timer actors.Timer // to look again; nil before the first time
}

// NewLargePages returns a budget of which nothing is used.
func NewLargePages(l sessioncore.LargeLimits) *LargePages {
	return &LargePages{core: sessioncore.NewLarge(l)}
}

// Used is what is held now, in bytes; Waiting how many event streams wait for room; Limit what may be held, beyond which one page may be.
func (l *LargePages) Used() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.core.Used()
}

// Waiting is documented at Used.
func (l *LargePages) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.core.Waiting()
}

// Limit is documented at Used.
func (l *LargePages) Limit() int { return l.core.Limits().Node }

// ask asks for room for so many bytes of a feed, and reports whether it has it already. If not, its gate is rung when it does.
func (l *LargePages) ask(f *feed, bytes int) (p *sessioncore.LargePage, held bool) {
	l.mu.Lock()
	p = l.core.Ask(&f.session.large, bytes, f)
	ended := l.look(f.session.opts.Clock)
	held = p.Held()
	l.mu.Unlock()
	endStuck(ended)
	return p, held
}

// has reports whether there is room for it by now.
func (l *LargePages) has(p *sessioncore.LargePage) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.Held()
}

// give lets go of it.
func (l *LargePages) give(p *sessioncore.LargePage, clock actors.Clock) {
	l.mu.Lock()
	l.core.Give(p)
	ended := l.look(clock)
	l.mu.Unlock()
	endStuck(ended)
}

// look carries out what was decided, but for ending streams, which is the caller's, without the lock. mu is held.
func (l *LargePages) look(clock actors.Clock) (ended []*sessioncore.LargePage) {
	now := clock.Now()
	granted, ended, again := l.core.Look(now)
	for _, p := range granted {
		p.Owner.(*feed).gate.Ring()
	}
	switch {
	case again.IsZero():
		if l.timer != nil {
			l.timer.Stop()
		}
	case l.timer == nil:
		l.timer = clock.AfterFunc(again.Sub(now), func() { l.tick(clock) })
	default:
		l.timer.Reset(again.Sub(now))
	}
	return ended
}

func (l *LargePages) tick(clock actors.Clock) {
	l.mu.Lock()
	ended := l.look(clock)
	l.mu.Unlock()
	endStuck(ended)
}

// endStuck breaks off event streams whose clients do not take what they were sent while others wait for its room. Nothing can be told on a stream
// that stands in the middle of a frame; whoever can resume does, behind the last event that it has.
func endStuck(pages []*sessioncore.LargePage) {
	for _, p := range pages {
		f := p.Owner.(*feed)
		o := f.session.opts
		o.Metrics.EventStreamsStuck.Inc()
		o.Events.Emit(eventStreamStuck{session: f.session.number, client: f.session.conn.RemoteAddr(), bytes: p.Bytes()})
		f.stream.CancelWrite()
	}
}

// Rooms that a feed may be given, or not.
type room uint8

const (
	// roomGiven: what was asked for may be held, until giveRoom.
	roomGiven room = iota
	// roomWaited: the same, and it was waited for.
	roomWaited
	// roomEnded: the event stream, its connection or the node ends first.
	roomEnded
)

// takeRoom has the feed hold so many bytes, and waits until it may. Before it does it calls aside, if not nil, which lets go of what there is of
// them already.
func (f *feed) takeRoom(ctx context.Context, bytes int, aside func()) room {
	pages := f.session.opts.Large
	if f.large != nil {
		if f.large.Bytes() >= bytes {
			return roomGiven
		}
		f.giveRoom()
	}
	p, held := pages.ask(f, bytes)
	f.large = p
	if held {
		return roomGiven
	}
	if aside != nil {
		aside()
	}
	for !pages.has(p) {
		if !f.gate.Wait(f.session.finish, f.stream.Context(), ctx) && !pages.has(p) {
			f.giveRoom()
			return roomEnded
		}
	}
	return roomWaited
}

// giveRoom lets go of what the feed was given, or waits for.
func (f *feed) giveRoom() {
	if f.large != nil {
		f.session.opts.Large.give(f.large, f.session.opts.Clock)
		f.large = nil
	}
}

// handSize is what a page takes in memory for this feed alone, in bytes, 0 if that is no more than usual: what was read from disk, and the frames
// that are made of it, with what a buffer that grows leaves behind.
func (f *feed) handSize(p *storage.Page) int {
	size := 0
	for _, b := range p.Batches {
		size += b.Size()
	}
	if size <= pageBytes {
		return 0
	}
	hand := 0
	if f.cursor.Behind() {
		hand = size
	}
	if f.source.copies() {
		hand += frameCopies * size
	}
	return hand
}

// frameCopies is how much a frame takes while it is made, in its content: base64 is four thirds, in a buffer that doubles.
const frameCopies = 3
