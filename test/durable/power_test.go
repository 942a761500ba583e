package durable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// leaves is what a power cut leaves, for a seed: the worst, or some of what was not synced.
func leaves(seed uint64) func(*vfs.Mem) *vfs.Mem {
	if seed%3 == 0 {
		return hard
	}
	r := rand.New(rand.NewPCG(seed, 1))
	return func(m *vfs.Mem) *vfs.Mem { return m.Crash(r.IntN) }
}

// Four producers publish while segments roll; the power goes at a random moment, with all that was not synced or a part of it. What was
// acknowledged is there at its offset, nothing is there twice, and service goes on.
//
// field case DUR-01 (one broker); matrix B20, B23, J1, K8; mission 322, mission 366
func TestDUR01_WhatIsAcknowledgedSurvivesAPowerCut(t *testing.T) {
	for n := range testkit.Size("power_cuts") {
		seed := uint64(time.Now().UnixNano()) + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			s := newSite(t)
			b := s.start(vfs.NewMem())
			l := newLedger()
			l.publish("p", "orders", s.connect(impatient), s.connect(impatient), s.connect(impatient), s.connect(impatient))
			delivered := make(chan string, 1<<16)
			sub := testkit.Must(s.connect(impatient).Subscribe(t.Context(), namespace, "orders", client.SubscribeOptions{From: client.Earliest(), Resume: client.ResumeNever}))(t)
			go func() {
				defer close(delivered)
				for e, err := range sub.Events(t.Context()) {
					if err != nil {
						return
					}
					delivered <- string(e.Payload)
				}
			}()
			target := 50 + rnd.IntN(500)
			testkit.Eventually(t, "enough is acknowledged", func() bool { return l.acknowledged() >= target })
			image := b.powerCut(leaves(seed))
			l.end()
			s.start(image)
			c := s.connect()
			got := read(t, c, "orders", 0, 0)
			l.check(t, got)
			n := 0
			for payload := range delivered { // what a subscriber has seen is in the log
				if n >= len(got) || string(got[n].Payload) != payload {
					t.Fatalf("%.20q was delivered and is not at %d", payload, n)
				}
				n++
			}
			sub.Close()
			publish(t, c, "orders", "after")
		})
	}
}

// A laxer mode loses no more than its window: the first record that is not synced yet begins an interval, and what was acknowledged when that
// ended is there once the sync that follows is over. The intervals pass when the test says so.
//
// field case DUR-01 (one broker); mission 280
func TestDUR01_APeriodicSyncLosesNoMoreThanItsWindow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	passing := make(chan *interval, 64)
	s.store = func(o *disklog.Options) {
		o.Fsync, o.FsyncInterval = disklog.Periodic, window
		o.Exec = intervals{o.Exec, passing}
	}
	b := s.start(vfs.NewMem())
	c := s.connect(impatient)
	acknowledged := id.Offset(0)
	more := func() {
		for range 50 {
			acknowledged = publish(t, c, "orders", value("p", int(acknowledged))) + 1
		}
	}
	for range 3 {
		more()
		select {
		case x := <-passing:
			before := syncs(b)
			x.ring()
			testkit.Eventually(t, "what an interval has gathered is synced", func() bool { return syncs(b) > before })
		case <-time.After(testkit.Patience):
			t.Fatal("no interval was begun by what is not synced")
		}
	}
	durable := acknowledged
	more()
	s.start(b.powerCut(hard))
	kept := id.Offset(len(read(t, s.connect(), "orders", 0, 0)))
	if kept < durable || kept > acknowledged {
		t.Errorf("%d of %d records are there; those up to %d were acknowledged before the end of an interval", kept, acknowledged, durable)
	}
	t.Logf("%d acknowledged, %d before the end of an interval, %d kept", acknowledged, durable, kept)
}

// window is the interval of that test, which nothing else in a broker takes.
const window = 123 * time.Millisecond

// intervals hands out the timers of that length instead of setting them.
type intervals struct {
	diskpool.Executor
	passing chan<- *interval
}

// After implements diskpool.Executor.
func (x intervals) After(d time.Duration, f func()) (stop func() bool) {
	if d != window {
		return x.Executor.After(d, f)
	}
	i := &interval{f: f}
	x.passing <- i
	return i.stop
}

// interval is one timer that rings when it is told to, unless it was stopped.
type interval struct {
	over atomic.Bool
	f    func()
}

func (i *interval) ring() {
	if !i.over.Swap(true) {
		i.f()
	}
}

func (i *interval) stop() bool { return !i.over.Swap(true) }

// The first record that a fresh node acknowledges needs the names of everything above it: they are durable with it.
//
// field case DUR-09 (streams); matrix B23, M10, L8
func TestDUR09_TheFirstRecordOfAFreshNodeSurvivesAPowerCut(t *testing.T) {
	for seed := range uint64(testkit.Size("power_cuts")) {
		s := newSite(t, stream{name: "orders", shards: 2})
		b := s.start(vfs.NewMem())
		at := publish(t, s.connect(impatient), "orders", "first")
		image := b.powerCut(leaves(seed))
		b = s.start(image)
		got := read(t, s.connect(), "orders", 0, 0)
		if len(got) != 1 || string(got[0].Payload) != "first" || got[0].Offset != at {
			t.Fatalf("seed %d: the log holds %+v", seed, got)
		}
		b.stop()
	}
}

// Many streams, a power cut, a start: listing is the control plane's, data, positions and states are as they were acknowledged; nothing is
// made again.
//
// field case DUR-14 (one broker); matrix G27 (streams), K7
func TestDUR14_AfterAnOutageEveryStreamIsFoundAgain(t *testing.T) {
	var streams []stream
	for n := range 20 {
		streams = append(streams, stream{name: fmt.Sprintf("s%02d", n), shards: 1 + uint32(n%3)})
	}
	s := newSite(t, streams...)
	mem := vfs.NewMem()
	next := map[string]id.Offset{}
	for life := range 4 {
		b := s.start(mem)
		c := s.connect(impatient)
		for _, x := range streams {
			got := read(t, c, x.name, 0, 0)
			if id.Offset(len(got)) != next[x.name] {
				t.Fatalf("life %d: %s holds %d records, want %d", life, x.name, len(got), next[x.name])
			}
			for i, r := range got {
				if string(r.Payload) != fmt.Sprint(x.name, i) {
					t.Fatalf("life %d: %q at %d of %s", life, r.Payload, r.Offset, x.name)
				}
			}
			if life > 0 {
				state, err := c.StateGet(t.Context(), namespace, x.name, []byte("e"), "life")
				if err != nil || !state.Found || string(state.Value) != fmt.Sprint(life-1) {
					t.Fatalf("life %d: the state of %s is %+v, %v", life, x.name, state, err)
				}
			}
			for range 3 {
				publish(t, c, x.name, fmt.Sprint(x.name, next[x.name]))
				next[x.name]++
			}
		}
		for _, x := range streams {
			at, err := c.Commit(t.Context(), namespace, x.name, []byte("e"), []byte(fmt.Sprint(x.name, next[x.name])), client.Put("life", []byte(fmt.Sprint(life))))
			if err != nil {
				t.Fatal(err)
			}
			if at == next[x.name] { // in shard 0
				next[x.name]++
			}
		}
		mem = b.powerCut(hard)
	}
}

// Numbered batches, sent again over power cuts by whoever does not know what became of them: each is there once, in its order, and its
// answer names its place.
//
// field case REP-10 (one broker); matrix J1, J2, J3
func TestREP10_ANumberedBatchIsThereOnceHoweverOftenItIsSent(t *testing.T) {
	s := newSite(t)
	mem := vfs.NewMem()
	b := s.start(mem)
	c := s.connect(func(o *client.Options) { o.AckTimeout = 5 * time.Second })
	ctx, cancel := context.WithTimeout(t.Context(), 4*testkit.Patience)
	defer cancel()
	p := testkit.Must(c.NewProducer(ctx, client.ProducerOptions{}))(t)
	const batches = 400
	var all []*client.ProducedBatch
	sent := make(chan int, batches)
	finished := make(chan error, 1)
	go func() {
		for n := range batches {
			var payloads [][]byte
			for i := range 5 {
				payloads = append(payloads, []byte(fmt.Sprint(n, "/", i)))
			}
			x, err := p.PublishBatchAsync(ctx, namespace, "orders", payloads)
			if err != nil {
				finished <- err
				return
			}
			all = append(all, x)
			sent <- n
		}
		finished <- p.Flush(ctx)
	}()
	cuts := 0
	for n := range sent {
		if n%(batches/8) == batches/16 {
			cuts++
			b = s.start(b.powerCut(leaves(uint64(cuts))))
		}
		if n == batches-1 {
			break
		}
	}
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	got := read(t, s.connect(), "orders", 0, 0)
	if len(got) != 5*batches {
		t.Fatalf("%d records after %d power cuts, want %d", len(got), cuts, 5*batches)
	}
	for n, x := range all {
		r, err := x.Wait(ctx)
		if err != nil || r.Offset != id.Offset(5*n) {
			t.Fatalf("batch %d was acknowledged at %d, %v", n, r.Offset, err)
		}
		for i := range 5 {
			if want := fmt.Sprint(n, "/", i); string(got[5*n+i].Payload) != want {
				t.Fatalf("%q at %d, want %q", got[5*n+i].Payload, 5*n+i, want)
			}
		}
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// What has no number is told to be of unknown outcome when its answer is lost, and is not sent again by the library.
//
// field case REP-10 (one broker)
func TestREP10_WithoutANumberALostAnswerIsSaidToBeUnknown(t *testing.T) {
	s := newSite(t)
	b := s.start(vfs.NewMem())
	c := s.connect(impatient)
	publish(t, c, "orders", "before")
	rule := b.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Block: true})
	ctx, cancel := testkit.Within()
	defer cancel()
	pending := testkit.Must(c.PublishAsync(ctx, namespace, "orders", []byte("lost")))(t)
	<-rule.Reached()
	image := b.mains.Cut(hard)
	rule.Release()
	b.abandon()
	if _, err := pending.Wait(ctx); !errors.Is(err, client.ErrOutcomeUnknown) {
		t.Fatalf("a publish whose broker died was answered %v", err)
	}
	s.start(image)
	c = s.connect()
	publish(t, c, "orders", "after")
	var got []string
	for _, r := range read(t, c, "orders", 0, 0) {
		got = append(got, string(r.Payload))
	}
	if text := strings.Join(got, " "); text != "before after" {
		t.Fatalf("the log holds %q: a sync that never ended was counted, or the library repeated", text)
	}
}
