package quicconn

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/sessionactor"
)

// QUIC takes whatever the windows of a client allow, and a window is nothing but the client's word. What is tried is taken at once and kept until
// it has a place in a packet, which takes acknowledgements: a client that grants much and acknowledges nothing would have all it asks for kept,
// in no budget of the node. A Write is not like that. It waits until what was taken before it, and all of itself but packetBytes, is in packets, of
// which congestion control allows few. So what was tried is counted, and beyond a bound somebody has to wait in a Write.
const (
	// streamUnsent bounds what of one stream was tried since a Write, in bytes: four of the largest writes of a watch, or two pieces of a page
	// that was put aside. A client that reads notices nothing: after each so many bytes one write waits for a few packets.
	streamUnsent = 256 << 10
	// connUnsent bounds the same for the answers on a connection together, and once more for its event streams, so that thousands of watches
	// that stand still cost no answer a goroutine: sixteen streams with all that one may have, and less than the packets hold that a
	// connection may have unacknowledged, 14 MB. While it is used up each stream may still have a packet's worth. The transport's buffers grow by
	// doubling, so that they may take twice as much.
	connUnsent = 4 << 20
	// packetBytes is what of a stream may wait in the transport in any case: quic-go copies the last so many bytes of a Write and returns.
	packetBytes = 1452
	// endedStreams is how many event streams the transport may have of a connection, and of a node, for each subscription that there may be: those
	// that are open, and those whose end the client has not acknowledged, about 3 KB each.
	endedStreams = 4
)

// unsent counts what of one stream may wait in the transport: never less than there is. Safe for concurrent use, though only one may write.
type unsent struct {
	shared *atomic.Int64 // of all streams of a kind of a connection: what is over packetBytes in each

	mu    sync.Mutex
	bytes int
}

// weight is what a stream counts for among those of its connection.
func weight(bytes int) int64 { return int64(max(0, bytes-packetBytes)) }

// take counts n bytes that are about to be tried. It reports false, and counts nothing, if that are too many.
func (u *unsent) take(n int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes+n > streamUnsent {
		return false
	}
	if more := weight(u.bytes+n) - weight(u.bytes); more > 0 && u.shared.Add(more) > connUnsent {
		u.shared.Add(-more)
		return false
	}
	u.bytes += n
	return true
}

// tried is told what became of n bytes that were taken.
func (u *unsent) tried(n int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, quic.ErrWouldBlock):
		u.mu.Lock()
		defer u.mu.Unlock()
		u.set(max(0, u.bytes-n)) // it was let go of if the stream was broken off meanwhile
		return sessionactor.ErrWouldBlock
	}
	u.gone()
	return err
}

// gone says that the stream was broken off, or the connection is gone, and with it what was kept.
func (u *unsent) gone() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.set(0)
}

// set is under the lock.
func (u *unsent) set(bytes int) {
	if change := weight(bytes) - weight(u.bytes); change != 0 {
		u.shared.Add(change)
	}
	u.bytes = bytes
}

// wrote is told what became of a Write: all before it is in packets, or the stream is gone.
func (u *unsent) wrote(n int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err != nil:
		u.set(0)
	case n > 0: // an empty one waits for nothing
		u.set(min(u.bytes+n, packetBytes))
	}
}

// remains is what a stream that was finished still counts for. It must not lead to the stream, or to its connection, which may still have it when
// it ends itself: neither would ever be let go of.
type remains struct {
	shared *atomic.Int64
	weight int64
}

// finished is told that the stream takes no more, and in the cause of its context how that came. What it has left is sent in time, and nobody
// is told when: it counts for as long as the transport has the stream, which is until its end was acknowledged.
func finished[S any](ctx context.Context, u *unsent, stream *S) {
	u.mu.Lock()
	defer u.mu.Unlock()
	inOrder := errors.Is(context.Cause(ctx), quic.ErrStreamClosed) // else it was stopped, or the connection is gone
	if w := weight(u.bytes); w > 0 && inOrder {
		runtime.AddCleanup(stream, func(r remains) { r.shared.Add(-r.weight) }, remains{u.shared, w})
		u.bytes = 0
		return
	}
	u.set(0)
}

// streamCount counts event streams. It refers to nothing of a connection, see remains.
type streamCount struct {
	used *atomic.Int64
	most int64
}

// take counts one more; false if they are too many.
func (n streamCount) take() bool {
	if n.used.Add(1) > n.most {
		n.used.Add(-1)
		return false
	}
	return true
}

// opening counts one more event stream. When there are too many, it waits for those that have ended and are not collected yet: a node with much in
// its memory collects seldom, and a client cannot help it. False when ctx is over before there is room.
func (c *conn) opening(ctx context.Context) bool {
	for !c.take() {
		look := time.NewTimer(c.collecting.begin()) // more may have been acknowledged by then
		select {
		case <-c.freed:
		case <-look.C:
		case <-ctx.Done():
			look.Stop()
			return false
		}
		look.Stop()
	}
	if c.streams.used.Load() < c.streams.most { // for who waits too
		c.kept().room()
	}
	return true
}

func (c *conn) take() bool {
	if !c.streams.take() {
		return false
	}
	if !c.all.take() {
		c.streams.used.Add(-1)
		return false
	}
	return true
}

// opened has a stream count until the transport has it no more.
func (c *conn) opened(s *quic.SendStream) { runtime.AddCleanup(s, kept.gone, c.kept()) }

// kept is what an event stream counts in. Like remains it must not lead to the stream or its connection.
type kept struct {
	streams, all *atomic.Int64
	freed        chan struct{}
}

func (c *conn) kept() kept { return kept{c.streams.used, c.all.used, c.freed} }

// gone says that one of the streams is there no more.
func (k kept) gone() {
	k.streams.Add(-1)
	k.all.Add(-1)
	k.room()
}

// room wakes one who waits for it.
func (k kept) room() {
	select {
	case k.freed <- struct{}{}:
	default:
	}
}

// collectPause is how long after a collection the next is begun for want of room: who acknowledges nothing must not have the node collect all the
// time. It is less than what a subscription waits for its stream.
const collectPause = 2 * time.Second

// collection is the one that was begun for want of room last, by any connection of a listener. Safe for concurrent use.
type collection struct {
	mu    sync.Mutex
	pause time.Duration
	begun time.Time
	due   bool // one is to begin when the pause is over
}

// begin has memory collected, once the pause is over, which it returns.
func (x *collection) begin() (pause time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.due {
		return x.pause
	}
	x.due = true
	time.AfterFunc(time.Until(x.begun.Add(x.pause)), func() {
		x.mu.Lock()
		x.begun, x.due = time.Now(), false
		x.mu.Unlock()
		runtime.GC()
	})
	return x.pause
}
