package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
	"github.com/felixd/felixd/wire/id"
)

// ledger is what became of the jobs, by their numbers.
type ledger struct {
	mu     sync.Mutex
	where  []id.Offset // of each job
	number map[id.Offset]int
	done   []int // how often a handler finished it
	worked int   // jobs that one finished
	failed int   // handlers that did not
	again  int   // deliveries of jobs that had been delivered before
	mended bool
	wrong  string // the first thing that must not be
}

func newLedger(jobs int) *ledger {
	return &ledger{where: make([]id.Offset, jobs), number: make(map[id.Offset]int, jobs), done: make([]int, jobs)}
}

// batchJobs is how many jobs are published at once.
const batchJobs = 100

// publish publishes all jobs: 128 bytes that begin with a number.
func (l *ledger) publish(ctx context.Context, c *client.Client) error {
	for first := 0; first < len(l.where); first += batchJobs {
		var payloads [][]byte
		for n := first; n < min(first+batchJobs, len(l.where)); n++ {
			payloads = append(payloads, append(binary.BigEndian.AppendUint64(nil, uint64(n)), strings.Repeat("a job...", 15)...))
		}
		r, err := c.PublishBatch(ctx, local.Namespace, streamName, payloads)
		if err != nil {
			return err
		}
		for i := range payloads {
			at := r.Offset.Add(uint64(i))
			l.where[first+i], l.number[at] = at, first+i
		}
	}
	return nil
}

// What fails: one job in so many always, others the first time.
const (
	badEvery    = 50
	failsEvery  = 7
	panicsEvery = 101
)

var errBad = errors.New("a bad job")

// work is the handler of all consumers.
func (l *ledger) work(_ context.Context, m client.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, known := l.number[m.Offset]
	if !known || len(m.Payload) != 128 || binary.BigEndian.Uint64(m.Payload) != uint64(n) {
		l.wrong = fmt.Sprintf("offset %d was handed out with content that is not its own", m.Offset)
		return nil
	}
	if m.Attempts > 1 {
		l.again++
	}
	switch {
	case n%badEvery == 0 && !l.mended, n%failsEvery == 1 && m.Attempts == 1:
		l.failed++
		return errBad
	case n%panicsEvery == 2 && m.Attempts == 1:
		l.failed++
		panic(errBad)
	}
	if l.done[n]++; l.done[n] == 1 {
		l.worked++
	}
	return nil
}

// until looks until cond holds, as long as something goes on.
func (l *ledger) until(ctx context.Context, what string, cond func() (bool, error)) error {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	last, moved := -1, time.Now()
	for {
		if ok, err := cond(); ok || err != nil {
			return err
		}
		l.mu.Lock()
		now := l.worked + l.failed + l.again
		l.mu.Unlock()
		if now != last {
			last, moved = now, time.Now()
		}
		if time.Since(moved) > time.Minute {
			return fmt.Errorf("%s: nothing has happened for a minute", what)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reach waits until so many jobs are worked off, and returns how many are.
func (l *ledger) reach(ctx context.Context, n int) (worked int, err error) {
	err = l.until(ctx, fmt.Sprintf("wait for %d jobs", n), func() (bool, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		worked = l.worked
		return worked >= n, nil
	})
	return worked, err
}

// settle waits until the group has nothing more to do, and balances.
func (l *ledger) settle(ctx context.Context, c *client.Client) (r report, err error) {
	err = l.until(ctx, "wait for the end of the queue", func() (bool, error) {
		var err error
		r.left, err = c.GroupDescribe(ctx, local.Namespace, streamName, 0, groupName)
		return err == nil && r.left.Lag() == 0 && r.left.InFlight == 0 && r.left.Owed == 0, err
	})
	if err != nil {
		return r, err
	}
	if r.dead, err = c.GroupDeadLetters(ctx, local.Namespace, streamName, 0, groupName); err != nil {
		return r, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.jobs, r.worked, r.failed, r.again, r.wrong = len(l.where), l.worked, l.failed, l.again, l.wrong
	dead := make(map[id.Offset]bool, len(r.dead))
	for _, o := range r.dead {
		dead[o] = true
	}
	for n, at := range l.where {
		switch {
		case l.done[n] == 0 && !dead[at]:
			r.lost++
		case l.done[n] > 0 && dead[at]:
			r.both++
		}
		if l.done[n] > 1 {
			r.twice++
		}
	}
	return r, nil
}

// redrive mends the bad jobs and has the dead letters handed out again.
func (l *ledger) redrive(ctx context.Context, c *client.Client, dead []id.Offset) error {
	l.mu.Lock()
	l.mended = true
	l.mu.Unlock()
	for _, o := range dead {
		if err := c.GroupRedrive(ctx, local.Namespace, streamName, 0, groupName, o); err != nil {
			return err
		}
	}
	return nil
}

// report is the ledger's balance.
type report struct {
	jobs, worked, failed, again, twice int
	lost, both                         int
	dead                               []id.Offset
	left                               client.GroupInfo
	wrong                              string
}

func (r report) balanced() bool {
	return r.jobs > 0 && r.worked+len(r.dead) == r.jobs && r.lost == 0 && r.both == 0 && r.wrong == "" &&
		r.left.Lag() == 0 && r.left.InFlight == 0 && r.left.Owed == 0 && r.left.DeadLetters == uint64(len(r.dead))
}

func (r report) String() string {
	text := fmt.Sprintf(`jobs                            %8d
  worked off                    %8d
    by two handlers             %8d   an ack was on its way when the broker was killed
  dead letters                  %8d
  neither                       %8d
  both                          %8d
handlers that failed            %8d
deliveries that were not first  %8d
in flight, owed, behind         %8d
`, r.jobs, r.worked, r.twice, len(r.dead), r.lost, r.both, r.failed, r.again, r.left.InFlight+r.left.Owed+r.left.Lag())
	if r.wrong != "" {
		text += r.wrong + "\n"
	}
	return text
}
