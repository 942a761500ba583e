package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// piece is what comes out of a source: a batch of events, or news of the shard.
type piece struct {
	kind  ItemKind
	batch batch // ItemEvent
	err   error // what happened, with the kinds that are a loss
	exact bool  // ItemShardRecovered

	item *CacheItem          // of a cache watch, instead of the rest
	at   wire.Opt[id.Offset] // of a cache watch: where to go on after this
}

// source takes batches of one shard off an event stream, and off another one when that ended and the policy says to go on.
// It reads only when it is asked to. One goroutine pulls at a time; stop may run beside it.
type source struct {
	client *Client
	op     string
	shard  uint32
	topic  topic
	sparse bool // offsets between events may belong to others: where the broker says to go on counts
	route  *route
	resume Resume
	whole  bool // part of a whole stream: an end without a reason counts as a loss
	ctx    context.Context
	cancel context.CancelFunc // ends everything of this source

	mu      sync.Mutex // of the next two
	stream  *opened    // ended ones stay until there is another
	stopped bool

	// The rest belongs to whoever pulls.
	resuming  *resuming
	next      id.Offset // of the first event not pulled yet
	placed    bool      // next means something
	live      id.Offset // what lies below is history
	gap       bool      // events may be missing before the next one
	fruitless int       // event streams in a row that brought nothing
	since     time.Time // when the current one was opened
	brought   bool      // it brought events
	snap      *snapshot // under way: what is known of the topic is not whole
	anew      bool      // the next change is the first of a snapshot that replaces what was known, or after it
	ahead     []piece   // to be handed out first: what a frame brought besides, two at most
	end       error     // why there are no more events
}

func newSource(c *Client, op, namespace, stream string, o SubscribeOptions, whole bool) *source {
	t := &streamTopic{wire.Subscribe{TenantID: c.opts.TenantID, Namespace: namespace, Stream: stream}}
	if o.Shard != 0 {
		t.message.Shard = wire.Some(o.Shard)
	}
	if o.QueueCapacity != 0 {
		t.message.QueueCapacity = wire.Some(o.QueueCapacity)
	}
	s := &source{
		client: c, op: op, shard: o.Shard, resume: o.Resume, whole: whole, topic: t,
		route: c.streams.entry(namespace, stream).route(o.Shard),
	}
	s.ctx, s.cancel = context.WithCancel(c.closing)
	return s
}

// install makes an accepted subscription the current one; false when the source was stopped meanwhile.
func (s *source) install(o *opened) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		o.stop()
		return false
	}
	s.stream = o
	s.since, s.brought = s.client.now(), false
	if start := o.accepted.StartOffset; start.Set {
		s.placed = true
		s.next = max(s.next, start.V)
	}
	s.live = o.accepted.LiveOffset.V
	s.installSnapshot(o)
	return true
}

func (s *source) current() *opened {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream
}

// stop ends the source, and a pull under way. Stopping again does nothing.
func (s *source) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.current().stop()
	s.cancel()
}

// over is the error of a source that this side ended; nil while it goes on.
func (s *source) over() error {
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	switch {
	case stopped:
		return fmt.Errorf("%s: the subscription is %w", s.op, ErrClosed)
	case s.client.isClosed():
		return closedError(s.op)
	}
	return nil
}

// pull waits for the next piece. Its error is that of ctx, after which pull may be called again and nothing is lost; or
// the end, which it then returns for ever.
func (s *source) pull(ctx context.Context) (piece, error) {
	for ctx.Err() == nil {
		if s.end == nil {
			s.end = s.over()
		}
		if s.end != nil {
			return piece{}, s.end
		}
		p, ok, err := s.step(ctx)
		if err != nil {
			p, ok = s.after(err)
		}
		if ok {
			return p, nil
		}
	}
	return piece{}, fmt.Errorf("%s: wait for an event: %w", s.op, ctx.Err())
}

// step takes the next frame, or the outcome of a resumption under way. Nothing at all comes when ctx ends.
func (s *source) step(ctx context.Context) (p piece, ok bool, err error) {
	if s.resuming != nil {
		p, ok = s.awaitResumption(ctx)
		return p, ok, nil
	}
	if len(s.ahead) > 0 {
		p, s.ahead = s.ahead[0], s.ahead[1:]
		return p, true, nil
	}
	o := s.current()
	header, payload, err := o.events.read(ctx)
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded): // ctx ended; an idle connection that timed out is another error
		return piece{}, false, nil // what has arrived of the frame stays
	default:
		return piece{}, false, s.lost(err)
	}
	s.client.stats.framesIn.Add(1)
	return s.topic.take(s, o, header, payload)
}

// place notes how far a batch reaches.
func (s *source) place(b *batch) error {
	if b.hasOffset {
		if s.placed && b.next < s.next {
			return &ProtocolError{Op: s.op, What: fmt.Sprintf("sent offset %s again, when %s was next", b.next, s.next)}
		}
		s.next, s.placed = b.next.Add(uint64(b.count)), true
	}
	b.shard = s.shard
	if b.count > 0 {
		b.gap, s.gap, s.brought = s.gap, false, true
	}
	s.client.stats.events.Add(uint64(b.count))
	return nil
}

// lost says how the stream ended.
func (s *source) lost(err error) error {
	var frame *wire.FrameError
	if over := s.over(); over != nil {
		return over
	}
	switch {
	case err == io.EOF:
		return io.EOF
	case errors.As(err, &frame):
		return &ProtocolError{Op: s.op, What: "bytes that are no frame", Err: err}
	}
	return &SubscriptionLostError{Op: s.op, Err: err}
}
