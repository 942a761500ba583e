package rawquic

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
)

const (
	// groupsMax and subscribersMax bound what subscribers without a relay can pile up: a stream each.
	groupsMax      = 64
	subscribersMax = 1024
	// chunksAhead is how many chunks a subscriber of several may be behind the reader: 256 KiB, a write under way and some to go on
	// with. Past it the reader waits.
	chunksAhead = 4
)

var (
	errNoSubscriber = errors.New("the group has no subscriber: subscribe before the relay begins")
	errTooMany      = errors.New("more subscribers than this server keeps")
)

// groups are the subscribers that wait for their relay.
type groups struct {
	mu      sync.Mutex
	waiting map[uint64][]*quic.Stream
}

func (g *groups) join(group uint64, stream *quic.Stream) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == nil {
		g.waiting = make(map[uint64][]*quic.Stream)
	}
	if _, known := g.waiting[group]; !known && len(g.waiting) == groupsMax || len(g.waiting[group]) == subscribersMax {
		return errTooMany
	}
	g.waiting[group] = append(g.waiting[group], stream)
	return nil
}

// take removes a group and returns its subscribers.
func (g *groups) take(group uint64) []*quic.Stream {
	g.mu.Lock()
	defer g.mu.Unlock()
	streams := g.waiting[group]
	delete(g.waiting, group)
	return streams
}

// leave removes a subscriber whose stream ended before its relay began.
func (g *groups) leave(group uint64, stream *quic.Stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	streams, known := g.waiting[group]
	if !known {
		return
	}
	if streams = slices.DeleteFunc(streams, func(s *quic.Stream) bool { return s == stream }); len(streams) == 0 {
		delete(g.waiting, group)
		return
	}
	g.waiting[group] = streams
}

// subscribe gives the stream to the group and says so.
func (s *Server) subscribe(stream *quic.Stream, o Order) error {
	if err := s.groups.join(o.Group, stream); err != nil {
		return err
	}
	context.AfterFunc(stream.Context(), func() { s.groups.leave(o.Group, stream) })
	_, err := stream.Write([]byte{Ready})
	return err
}

// relay passes a stream on until it ends, and then ends those of the subscribers.
func (s *Server) relay(stream *quic.Stream, o Order) error {
	subscribers := s.groups.take(o.Group)
	var err error
	switch len(subscribers) {
	case 0:
		return errNoSubscriber
	case 1:
		err = s.copy(stream, o, subscribers[0])
	default:
		err = s.fan(stream, o, subscribers)
	}
	for _, sub := range subscribers {
		if err != nil {
			transport.AbortStream(sub, transport.StreamFinished)
		} else {
			transport.FinishStream(sub)
		}
	}
	return err
}

// copy is the relay to one subscriber.
func (s *Server) copy(stream *quic.Stream, o Order, subscriber *quic.Stream) error {
	buf := make([]byte, bufferBytes)
	due := acks{unit: o.Unit}
	for {
		n, err := stream.Read(buf)
		s.received.Add(uint64(n))
		if n > 0 {
			if _, err := subscriber.Write(buf[:n]); err != nil {
				return err
			}
		}
		if answers := due.take(n); len(answers) > 0 {
			if _, err := stream.Write(answers); err != nil {
				return err
			}
		}
		if err != nil {
			return atEnd(err)
		}
	}
}

// chunk is what one read took, until the last subscriber has written it.
type chunk struct {
	data  [bufferBytes]byte
	n     int
	users atomic.Int32
}

// writer is one subscriber of several.
type writer struct {
	stream *quic.Stream
	chunks chan *chunk
	failed atomic.Bool
	err    error // why, once failed
}

// fan is the relay to several subscribers. Each writes at its own pace, at most chunksAhead behind.
func (s *Server) fan(stream *quic.Stream, o Order, subscribers []*quic.Stream) error {
	pool := sync.Pool{New: func() any { return new(chunk) }}
	writers := make([]*writer, len(subscribers))
	var all sync.WaitGroup
	for i, sub := range subscribers {
		w := &writer{stream: sub, chunks: make(chan *chunk, chunksAhead)}
		writers[i] = w
		all.Go(func() { w.run(&pool) })
	}
	err := s.spread(stream, o, writers, &pool)
	for _, w := range writers {
		close(w.chunks)
	}
	all.Wait()
	for _, w := range writers {
		err = errors.Join(err, w.err)
	}
	return err
}

// spread reads and hands every chunk to every subscriber, until the stream ends or a subscriber is gone.
func (s *Server) spread(stream *quic.Stream, o Order, writers []*writer, pool *sync.Pool) error {
	due := acks{unit: o.Unit}
	for {
		c := pool.Get().(*chunk)
		n, err := stream.Read(c.data[:])
		s.received.Add(uint64(n))
		c.n = n
		c.users.Store(int32(len(writers)))
		for _, w := range writers {
			if w.failed.Load() {
				return nil // fan has its error
			}
			w.chunks <- c
		}
		if answers := due.take(n); len(answers) > 0 {
			if _, err := stream.Write(answers); err != nil {
				return err
			}
		}
		if err != nil {
			return atEnd(err)
		}
	}
}

// run writes until there is nothing more. After a failure it only empties the channel, so that the reader never waits for it.
func (w *writer) run(pool *sync.Pool) {
	for c := range w.chunks {
		if w.err == nil && c.n > 0 {
			if _, w.err = w.stream.Write(c.data[:c.n]); w.err != nil {
				w.failed.Store(true)
			}
		}
		if c.users.Add(-1) == 0 {
			pool.Put(c)
		}
	}
}
