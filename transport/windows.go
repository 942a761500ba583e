package transport

import (
	"fmt"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Windows are the receive windows of a connection, in bytes: how much a peer may have sent that our side has not read. They
// start at the initial values and double, up to the maxima, while the reader keeps up; a reader that stops holds at most
// the window its stream had. A pool of n connections multiplies them: 8 connections of 256 MiB may hold 2 GiB.
type Windows struct {
	StreamInitial uint64 // one stream, at its start
	StreamMax     uint64 // one stream, at most
	ConnInitial   uint64 // all streams of a connection together, at its start
	ConnMax       uint64 // all streams of a connection together, at most
}

// DefaultServerWindows are a broker's: each connection starts cheap, since thousands of them may sit idle, and a busy one
// ends at 2 MiB per stream and 8 MiB per connection. More brought no throughput when measured and costs memory for each
// publisher that outruns its shard. The operator's window settings change the maxima through WithMax.
func DefaultServerWindows() Windows {
	return Windows{StreamInitial: 128 * kib, StreamMax: 2 * mib, ConnInitial: 512 * kib, ConnMax: 8 * mib}
}

// DefaultClientWindows are a client's, for events: up to 64 MiB per subscription and 256 MiB per connection, so that a burst
// fits while the application is busy. A stream starts at what suits a quiet subscription. A connection starts at its most: its window grows
// only as something is read, so that with a small one the few subscriptions that nobody reads would hold up everything else on it,
// answers and signs of life included.
func DefaultClientWindows() Windows {
	return Windows{StreamInitial: 512 * kib, StreamMax: 64 * mib, ConnInitial: 256 * mib, ConnMax: 256 * mib}
}

// WithMax returns w with other maxima, in bytes; 0 keeps the one there is. Initial values never exceed their maximum: a
// smaller maximum lowers them. It returns a *WindowError for a stream window above the connection's, which could never be
// used.
func (w Windows) WithMax(stream, conn uint64) (Windows, error) {
	if stream != 0 {
		w.StreamMax = stream
	}
	if conn != 0 {
		w.ConnMax = conn
	}
	w.StreamInitial = min(w.StreamInitial, w.StreamMax)
	w.ConnInitial = min(w.ConnInitial, w.ConnMax)
	if err := w.check(); err != nil {
		return Windows{}, err
	}
	return w, nil
}

// Total is the most that count connections with these windows can make a process hold, in bytes: the number to print at
// start-up next to a pool size.
func (w Windows) Total(count int) uint64 {
	if count <= 0 {
		return 0
	}
	return w.ConnMax * uint64(count)
}

// WindowError reports windows that contradict each other.
type WindowError struct {
	Windows Windows
	Problem string
}

// Error names the values and what to change.
func (e *WindowError) Error() string {
	return fmt.Sprintf("set receive windows: %s (stream %d..%d, connection %d..%d bytes)", e.Problem,
		e.Windows.StreamInitial, e.Windows.StreamMax, e.Windows.ConnInitial, e.Windows.ConnMax)
}

// windowLimit is the largest number QUIC can carry (RFC 9000 16).
const windowLimit = 1<<62 - 1

func (w Windows) check() error {
	problem := ""
	switch {
	case w.StreamInitial == 0 || w.ConnInitial == 0:
		problem = "a window of 0 lets nothing through; use at least 1 byte"
	case w.StreamMax > windowLimit || w.ConnMax > windowLimit:
		problem = "a window must stay below 2^62"
	case w.StreamInitial > w.StreamMax || w.ConnInitial > w.ConnMax:
		problem = "a window starts above its maximum; raise the maximum"
	case w.StreamMax > w.ConnMax:
		problem = "the stream window exceeds the connection window; lower the first or raise the second"
	}
	if problem == "" {
		return nil
	}
	return &WindowError{Windows: w, Problem: problem}
}
