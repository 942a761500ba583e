package sessioncore

import (
	"fmt"
	"slices"
	"time"
)

// LargeLimits bound the large pages that event streams are writing, in bytes of memory: those of one connection, and all of a node.
type LargeLimits struct{ Conn, Node int }

// DefaultLarge is 128 MiB for a node and a quarter of it for a connection: four connections that do not read leave nothing to others for
// the few seconds until they are noticed.
func DefaultLarge() LargeLimits { return LargeLimits{Conn: 32 << 20, Node: 128 << 20} }

// What a client is allowed for a page when others wait for its room: largeGrace, and time to take it at largeRate bytes a second, which a mobile
// network does. Nobody is looked at while nobody waits.
const (
	largeGrace = 2 * time.Second
	largeRate  = 1 << 20
)

// Large decides which event streams may hold a page that is larger than usual while their clients take it. Streams ask before they have the page
// for good, and wait without it, in the order in which they asked; one that is over its connection's share holds up no other connection.
// Clients that do not read pay for what they hold, and not those who come next: when somebody waits, a stream that has had its page for longer
// than it takes is ended, of those in the scope that is full, in the connection that holds most, the one that has had it longest.
//
// A page that is larger than a limit is held alone in its scope. It is not safe for concurrent use.
//
//  1. used is what all held pages have, and each connection's bytes what its own have, ended ones included until they are given back;
//  2. beyond a limit there is at most one page in its scope;
//  3. of two that wait for the same scope, the one that asked first holds first.
type Large struct {
	limits  LargeLimits
	used    int
	leaving int // of used: pages of streams that are being ended
	waiting []*LargePage
	conns   []*LargeConn // that hold something
}

// LargeConn is what one connection holds. The zero value holds nothing.
type LargeConn struct {
	bytes, leaving int
	pages          []*LargePage
	passed         bool // in the look under way: one of its streams goes on waiting
}

// LargePage is one page, from Ask to Give.
type LargePage struct {
	// Owner is the caller's.
	Owner any

	conn  *LargeConn
	bytes int
	held  bool
	ended bool
	until time.Time // it may be ended from then on; meaningful while held
}

// Bytes is what was asked for; Held whether the page may be held.
func (p *LargePage) Bytes() int { return p.bytes }
func (p *LargePage) Held() bool { return p.held }

// NewLarge returns one that holds nothing.
func NewLarge(l LargeLimits) *Large {
	if l.Conn <= 0 || l.Node < l.Conn {
		panic(fmt.Sprintf("sessioncore: the limits of large pages %+v contradict each other", l))
	}
	return &Large{limits: l}
}

// Used is what is held, in bytes; Waiting how many streams wait; Limits what it was made with.
func (l *Large) Used() int           { return l.used }
func (l *Large) Waiting() int        { return len(l.waiting) }
func (l *Large) Limits() LargeLimits { return l.limits }

// Ask asks for a page of so many bytes; positive. Look says whether it is held.
func (l *Large) Ask(conn *LargeConn, bytes int, owner any) *LargePage {
	if bytes <= 0 {
		panic(fmt.Sprintf("sessioncore: a large page of %d bytes", bytes))
	}
	p := &LargePage{Owner: owner, conn: conn, bytes: bytes}
	l.waiting = append(l.waiting, p)
	return p
}

// Give lets go of a page, also of one that waits.
func (l *Large) Give(p *LargePage) {
	if !p.held {
		l.waiting = slices.DeleteFunc(l.waiting, func(x *LargePage) bool { return x == p })
		return
	}
	c := p.conn
	c.pages = slices.DeleteFunc(c.pages, func(x *LargePage) bool { return x == p })
	c.bytes, l.used = c.bytes-p.bytes, l.used-p.bytes
	if p.ended {
		c.leaving, l.leaving = c.leaving-p.bytes, l.leaving-p.bytes
	}
	if p.held = false; len(c.pages) == 0 {
		l.conns = slices.DeleteFunc(l.conns, func(x *LargeConn) bool { return x == c })
	}
	if c.bytes < 0 || l.used < 0 || c.leaving < 0 || l.leaving < 0 {
		panic("sessioncore: more was given back of large pages than was taken")
	}
}

// Look decides: which pages may be held from now on, which streams are to be ended, whose pages count until they are given back, and when to look
// again if nothing happens before; zero is not at all.
func (l *Large) Look(now time.Time) (granted, ended []*LargePage, again time.Time) {
	full := false // for all connections
	wait := l.waiting[:0]
	for _, p := range l.waiting {
		c := p.conn
		switch {
		case c.passed:
		case c.bytes > 0 && c.bytes+p.bytes > l.limits.Conn:
			c.passed = true
			ended = l.end(ended, now, c, min(c.bytes, c.bytes+p.bytes-l.limits.Conn)-c.leaving)
		case full:
		case l.used > 0 && l.used+p.bytes > l.limits.Node:
			full = true
			ended = l.end(ended, now, nil, min(l.used, l.used+p.bytes-l.limits.Node)-l.leaving)
		default:
			l.hold(p, now)
			granted = append(granted, p)
			continue
		}
		wait = append(wait, p)
	}
	clear(l.waiting[len(wait):])
	l.waiting = wait
	for _, p := range wait {
		p.conn.passed = false
	}
	if len(wait) > 0 {
		again = l.next(now)
	}
	return granted, ended, again
}

// hold notes that the page is held.
func (l *Large) hold(p *LargePage, now time.Time) {
	c := p.conn
	if len(c.pages) == 0 {
		l.conns = append(l.conns, c)
	}
	c.pages = append(c.pages, p)
	c.bytes, l.used = c.bytes+p.bytes, l.used+p.bytes
	p.held, p.until = true, now.Add(largeGrace+time.Duration(p.bytes)*time.Second/largeRate)
}

// end ends streams until so many bytes are being given back, as far as there are some that have had their time: of one connection, or of all
// when c is nil.
func (l *Large) end(ended []*LargePage, now time.Time, c *LargeConn, bytes int) []*LargePage {
	for bytes > 0 {
		p := l.worst(now, c)
		if p == nil {
			break
		}
		p.ended = true
		p.conn.leaving, l.leaving, bytes = p.conn.leaving+p.bytes, l.leaving+p.bytes, bytes-p.bytes
		ended = append(ended, p)
	}
	return ended
}

// worst is the page that goes next, nil if none has to yet.
func (l *Large) worst(now time.Time, c *LargeConn) (worst *LargePage) {
	conns := l.conns
	if c != nil {
		conns = []*LargeConn{c}
	}
	most := -1
	for _, c := range conns {
		if c.bytes-c.leaving <= most {
			continue
		}
		for _, p := range c.pages { // in the order in which they were granted
			if !p.ended && !now.Before(p.until) {
				worst, most = p, c.bytes-c.leaving
				break
			}
		}
	}
	return worst
}

// next is when the next page has had its time.
func (l *Large) next(now time.Time) (at time.Time) {
	for _, c := range l.conns {
		for _, p := range c.pages {
			if !p.ended && p.until.After(now) && (at.IsZero() || p.until.Before(at)) {
				at = p.until
			}
		}
	}
	return at
}
