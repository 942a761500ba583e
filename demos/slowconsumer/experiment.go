package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
	"github.com/felixd/felixd/internal/node"
)

// streamName is the stream that everything goes through; it has one shard.
const streamName = "load"

// slowShare is the part of the rate that the slow reader reads in the last phase.
const slowShare = 5

// patience is how long something may take that is not measured.
const patience = time.Minute

// phase is a part of the experiment and what the first reader does in it.
type phase struct {
	name string
	pace pace
}

func phases() []phase {
	return []phase{
		{"all read", atFullSpeed},
		{"one stops", notAtAll},
		{"it reads again", atFullSpeed},
		{"it reads a fifth", slowly},
	}
}

// lab is everything that runs while the load is on.
type lab struct {
	o         options
	broker    *local.Broker
	publisher *publisher
	readers   []*reader
	bound     int64 // bytes that the broker may hold for the stream and its readers
}

// experiment runs the load under one policy. The error is a failure; whether the claims held is for the report to say.
func experiment(ctx context.Context, o options, p policy, s *screen) (report, error) {
	l, err := openWith(ctx, o, brokerFor(o, p))
	if err != nil {
		return report{}, err
	}
	l.bound = o.memoryBound(p)
	return l.experiment(ctx, p, s)
}

// openWith starts the broker, subscribes, and connects the publisher.
func openWith(ctx context.Context, o options, adjust func(*node.Options)) (*lab, error) {
	b, err := local.Start(local.Options{Streams: []local.Stream{{Name: streamName}}, Adjust: adjust})
	if err != nil {
		return nil, err
	}
	l := &lab{o: o, broker: b}
	for i := range o.subscribers {
		x, err := newReader(ctx, b, o, o.capacity(i))
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.readers = append(l.readers, x)
	}
	co := b.Client()
	co.AckTimeout = 2*o.duration + patience // under block an answer waits as long as a subscriber does not read
	c, err := client.Connect(ctx, co)
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.publisher = &publisher{client: c, o: o}
	return l, nil
}

// experiment runs the load to its end and closes the lab.
func (l *lab) experiment(ctx context.Context, p policy, s *screen) (r report, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer func() { err = errors.Join(err, l.close()) }()
	var work sync.WaitGroup
	defer work.Wait() // before the broker is closed under their feet
	defer cancel(nil)
	run := func(f func() error) {
		work.Go(func() {
			if err := f(); err != nil {
				cancel(err) // the first one is what went wrong
			}
		})
	}
	for _, x := range l.readers {
		run(func() error { return x.read(ctx) })
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	run(func() error {
		defer close(stopped)
		return l.publisher.publish(ctx, stop)
	})
	if r, err = l.run(ctx, p, s); err != nil {
		return report{}, err
	}
	l.readers[0].set(atFullSpeed)
	close(stop)
	return r, l.finish(ctx, stopped, &r)
}

// run goes through the phases.
func (l *lab) run(ctx context.Context, p policy, s *screen) (report, error) {
	r := report{policy: p, rate: l.o.rate, bound: l.bound}
	from, err := l.sample()
	if err != nil {
		return report{}, err
	}
	r.heapBefore = from.heap
	for _, ph := range phases() {
		l.readers[0].set(ph.pace)
		x := row{phase: ph.name}
		if from, err = l.watch(ctx, from, &x, func() { s.live(r.rows, x) }); err != nil {
			return report{}, err
		}
		r.rows = append(r.rows, x)
		s.done(r.rows)
	}
	return r, nil
}

// grace is how much longer a phase lasts, at most, until those that keep up have what was published in it: on a busy machine the last
// of it is still on its way.
const grace = time.Second

// watch looks at everything until the phase is over, and returns the last sample.
func (l *lab) watch(ctx context.Context, from sample, x *row, seen func()) (now sample, err error) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	end := from.at.Add(l.o.duration)
	for until := uint64(0); ; {
		select {
		case <-look.C:
		case <-ctx.Done():
			return sample{}, context.Cause(ctx)
		}
		if now, err = l.sample(); err != nil {
			return sample{}, err
		}
		x.update(from, now, l.o.rate)
		seen()
		if now.at.Before(end) {
			continue
		}
		if until == 0 {
			until = now.published
		}
		if now.reached(until) || now.at.After(end.Add(grace)) {
			return now, nil
		}
	}
}

// reached reports whether all subscribers but the first have got past so many records.
func (s *sample) reached(published uint64) bool {
	for _, t := range s.readers[1:] {
		if t.next < published {
			return false
		}
	}
	return true
}
