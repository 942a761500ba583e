package sessioncore

import "fmt"

// LargeLimits bound the large pages that event streams keep in hand while their clients do not take them, in bytes of memory: those of one
// connection, and all of a node.
type LargeLimits struct{ Conn, Node int }

// DefaultLarge is 128 MiB for a node and a quarter of it for a connection.
func DefaultLarge() LargeLimits { return LargeLimits{Conn: 32 << 20, Node: 128 << 20} }

// Large decides which event streams may keep a page that is larger than usual until their clients have taken it. Nobody waits for that: who may not
// writes it piece by piece, and reads it again for each, which takes longer and holds next to nothing. So whoever does not read makes others work
// more, and keeps nothing from them. It is not safe for concurrent use.
//
//  1. used is what all pages have that are kept, at most Node; each connection's bytes what its own have, at most Conn or one page.
type Large struct {
	limits LargeLimits
	used   int
}

// LargeConn is what one connection keeps. The zero value is nothing.
type LargeConn struct{ bytes int }

// NewLarge returns one that keeps nothing.
func NewLarge(l LargeLimits) *Large {
	if l.Conn <= 0 || l.Node < l.Conn {
		panic(fmt.Sprintf("sessioncore: the limits of large pages %+v contradict each other", l))
	}
	return &Large{limits: l}
}

// Used is what is kept, in bytes; Limits what it was made with.
func (l *Large) Used() int           { return l.used }
func (l *Large) Limits() LargeLimits { return l.limits }

// Take keeps a page of so many bytes until Give, or reports that it may not be kept.
func (l *Large) Take(c *LargeConn, bytes int) bool {
	if l.used+bytes > l.limits.Node || c.bytes > 0 && c.bytes+bytes > l.limits.Conn {
		return false
	}
	l.used += bytes
	c.bytes += bytes
	return true
}

// Give lets go of one.
func (l *Large) Give(c *LargeConn, bytes int) {
	l.used -= bytes
	c.bytes -= bytes
	if l.used < 0 || c.bytes < 0 {
		panic("sessioncore: more was given back of large pages than was taken")
	}
}
