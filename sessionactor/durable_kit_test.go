package sessionactor

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// shelf is a log that lasts, as far as a session can tell: all that its ring holds is its history, and readers begin where they asked
// to. It can be told to fail, and to wait like a disk that does not answer.
type shelf struct {
	storage.Reader

	mu    sync.Mutex
	err   error         // of every read
	gate  chan struct{} // not nil: reads of history wait for it
	enter chan struct{} // told when one waits
}

func (s *shelf) state() (gate, enter chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gate, s.enter, s.err
}

// fail makes every read fail from now on; nil heals it.
func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// stall makes reads of history wait until resume is called. entered is told of each.
func (s *shelf) stall() (entered <-chan struct{}, resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate, s.enter = gate, make(chan struct{}, 64)
	return s.enter, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gate = nil
		close(gate)
	})
}

// wait is what the disk does to a read.
func (s *shelf) wait(ctx context.Context) error {
	gate, enter, err := s.state()
	if gate == nil {
		return err
	}
	enter <- struct{}{}
	select {
	case <-gate:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Register implements storage.Reader.
func (s *shelf) Register(o storage.CursorOptions) (storage.Cursor, error) {
	if _, _, err := s.state(); err != nil {
		return nil, err
	}
	c, err := s.Reader.Register(o)
	if err != nil {
		return nil, err
	}
	return &shelfCursor{Cursor: c, of: s}, nil
}

type shelfCursor struct {
	storage.Cursor
	of    *shelf
	began bool
}

// Take implements storage.Cursor.
func (c *shelfCursor) Take(ctx context.Context, maxBatches, maxBytes int, dst []*batch.Batch) (storage.Page, error) {
	if _, _, err := c.of.state(); err != nil {
		return storage.Page{}, err
	}
	page, err := c.Cursor.Take(ctx, maxBatches, maxBytes, dst)
	if len(page.Batches) > 0 && !c.began {
		c.began = true
		page.Batches[0] = page.Batches[0].From(c.Start())
		page.From = max(page.From, c.Start())
	}
	return page, err
}

// Read implements storage.History.
func (s *shelf) Read(ctx context.Context, from, end id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) ([]*batch.Batch, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	all, err := s.all(from)
	if err != nil {
		return nil, err
	}
	out, bytes := dst[:0], 0
	for _, b := range all {
		if b.Base >= end || len(out) == maxBatches || len(out) > 0 && bytes+b.Size() > maxBytes {
			break
		}
		out, bytes = append(out, b), bytes+b.Size()
	}
	return out, nil
}

// all are the batches of the log from the one that an offset lies in.
func (s *shelf) all(from id.Offset) ([]*batch.Batch, error) {
	c, err := s.Reader.Register(storage.CursorOptions{Start: storage.StartOffset, Offset: from, Capacity: 1, Ring: func() {}})
	if err != nil {
		return nil, err
	}
	defer c.Release()
	page, err := c.Take(context.Background(), 1<<20, 1<<30, nil)
	return slices.Clone(page.Batches), err
}

// OffsetForTime implements storage.History.
func (s *shelf) OffsetForTime(ctx context.Context, micros uint64) (id.Offset, bool, error) {
	if err := s.wait(ctx); err != nil {
		return 0, false, err
	}
	oldest, _ := s.Bounds()
	all, err := s.all(oldest)
	for _, b := range all {
		if b.AppendMicros >= micros {
			return b.Base, true, nil
		}
	}
	return 0, false, err
}

// durable starts a site whose streams are durable for its sessions. The first is the log of orders.
func durable(t testing.TB, s setting) (*site, *shelf) {
	change := s.change
	s.change = func(o *Options) {
		o.Offer = DurableOffer()
		if change != nil {
			change(o)
		}
	}
	x := open(t, s)
	return x, x.keep("orders")
}

// keep makes a stream durable for the sessions.
func (x *site) keep(name string) *shelf {
	e := x.opts.Table.Get(stream(name, 1).Name)
	targets := slices.Clone(e.Shards())
	var first *shelf
	for i := range targets {
		h := *targets[i].Shard
		log := &shelf{Reader: h.Log}
		h.Durable, h.Log, h.History, h.State = true, log, log, reading.NewState(reading.NewStateBudget(1<<20))
		targets[i].Shard = &h
		if first == nil {
			first = log
		}
	}
	x.opts.Table.Update([]*shardactor.Entry{route.NewEntry(e.Name, e.Incarnation, e.Routing, true, targets)}, nil)
	return first
}

// told collects events.
type told struct {
	mu     sync.Mutex
	events []actors.Event
}

func (s *told) Emit(e actors.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// of counts the events of a name.
func (s *told) of(name string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.EventName() == name {
			n++
		}
	}
	return n
}
