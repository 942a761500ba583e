package durable

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// One sync fails, once, with eight publishers waiting for it and one subscriber: none of them is acknowledged, nothing more ever is, the
// subscriber gets nothing of it, reads stop at what was durable before, other streams go on, and after a restart what was acknowledged is there.
//
// field case DUR-08 (one broker); matrix E1, E2, E3, E4, L2
func TestDUR08_AfterAFailedFlushNothingMoreIsAcknowledged(t *testing.T) {
	for what, rule := range map[string]vfs.Rule{
		"of data":         {Calls: []vfs.Call{vfs.CallSync}, Name: "*orders*/*.log", Times: 1},
		"of a new name":   {Calls: []vfs.Call{vfs.CallSyncDir}, Name: "*orders*", Times: 1},
		"of the mark":     {Calls: []vfs.Call{vfs.CallSync}, Name: "*orders*/durable.mark", Times: 1},
		"of a new header": {Calls: []vfs.Call{vfs.CallSync}, Name: "*orders*/00000000000000000001.log", Times: 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, stream{name: "orders"}, stream{name: "other"})
			s.store = rollEvery(8 << 10)
			b := s.start(vfs.NewMem())
			c := s.connect()
			l := newLedger()
			for n := range 5 {
				v := value("before", n)
				l.heard(v, client.PublishResult{Offset: publish(t, c, "orders", v), HasOffset: true}, nil)
			}
			sub := testkit.Must(s.connect().Subscribe(t.Context(), namespace, "orders", client.SubscribeOptions{}))(t)
			defer sub.Close()
			rule.Err = syscall.EIO
			hit := b.fault.Add(rule)
			var clients []*client.Client
			for range 8 {
				clients = append(clients, s.connect(impatient))
			}
			l.publish("p", "orders", clients...)
			<-hit.Reached()
			testkit.Eventually(t, "the log has ended", func() bool { return b.metric("felix_storage_logs_poisoned_total") == 1 })
			acknowledged := l.acknowledged()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			for range 3 { // a later success proves nothing
				if _, err := c.Publish(ctx, namespace, "orders", []byte("late")); err == nil {
					t.Fatal("acknowledged after a sync that failed")
				}
			}
			testkit.After(500 * time.Millisecond) // in which answers that were on their way arrive, and no others
			l.end()
			if more := l.acknowledged(); more > acknowledged+8 {
				t.Fatalf("%d publishes were acknowledged after the failure", more-acknowledged)
			}
			publish(t, c, "other", "goes on")
			if hit.Hits() != 1 || b.metric("felix_storage_sync_failures_total") != 1 {
				t.Errorf("%d syncs failed, %v are counted", hit.Hits(), b.metric("felix_storage_sync_failures_total"))
			}
			drained, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			var delivered []string
			for e, err := range sub.Events(drained) {
				if err != nil {
					break
				}
				delivered = append(delivered, string(e.Payload))
			}
			l.deliveredOnly(t, delivered)
			page, readErr := c.Read(t.Context(), namespace, "orders", client.ReadOptions{})
			image := b.powerCut(hard)
			s.start(image)
			c = s.connect()
			there := read(t, c, "orders", 0, 0)
			l.check(t, there)
			if readErr == nil && page.Next > id.Offset(len(there)) {
				t.Errorf("a read went to %d, and %d records were durable", page.Next, len(there))
			}
			for n, v := range delivered {
				if 5+n >= len(there) || string(there[5+n].Payload) != v {
					t.Errorf("%.20q was delivered and is not at %d", v, 5+n)
				}
			}
			publish(t, c, "orders", "after")
		})
	}
}

// A sync that hangs holds up its own stream only, answers in time that the outcome is unknown, and goes on where it stood when the disk
// answers. A publisher who left meanwhile strands nobody, and what it wrote is there for whoever subscribes at the end.
//
// matrix E8, A26, A27
func TestE8_ASyncThatHangsHoldsUpOneStreamAndEndsWell(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, stream{name: "orders"}, stream{name: "other"})
	s.node = func(o *node.Options) { o.Limits.AckWait = node.DefaultLimits().AckWait }
	b := s.start(vfs.NewMem())
	c, gone := s.connect(), s.connect()
	publish(t, c, "orders", "0")
	rule := b.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*orders*/*.log", Block: true})
	leaving, leave := context.WithCancel(t.Context())
	_ = testkit.Must(gone.PublishAsync(leaving, namespace, "orders", []byte("1")))(t)
	<-rule.Reached()
	leave()
	closing, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = gone.Close(closing) // one publish of it has no outcome
	begun := time.Now()
	_, err := c.Publish(t.Context(), namespace, "orders", []byte("2"))
	if took := time.Since(begun); !errors.Is(err, client.ErrOutcomeUnknown) || took > testkit.Figure(10*time.Second) {
		t.Fatalf("a publish to a disk that hangs was answered %v after %v", err, took)
	}
	for n := range 200 {
		publish(t, c, "other", fmt.Sprint(n))
	}
	rule.Release()
	publish(t, c, "orders", "3")
	var text []string
	for _, r := range read(t, c, "orders", 0, 0) {
		text = append(text, string(r.Payload))
	}
	if got := strings.Join(text, " "); got != "0 1 2 3" {
		t.Fatalf("the log holds %q", got)
	}
	_, next := bounds(t, c, "orders")
	if next != 4 {
		t.Fatalf("the end is %d", next)
	}
}

// All files of one stream answer that they are stale, then that they cannot be read: its publishes and reads fail by type, other streams serve
// at full, and after a start on the healed disk everything is there.
//
// field case DUR-15 (one broker); matrix E18, E3
func TestDUR15_StorageThatFailsTakesOutItsOwnStreamOnly(t *testing.T) {
	s := newSite(t, stream{name: "orders"}, stream{name: "other"})
	s.store = rollEvery(8 << 10)
	b := s.start(vfs.NewMem())
	c := s.connect(impatient)
	for n := range 100 {
		publish(t, c, "orders", value("o", n))
		publish(t, c, "other", value("x", n))
	}
	for _, err := range []error{syscall.ESTALE, syscall.EIO} {
		rule := b.fault.Add(vfs.Rule{Match: func(name string) bool { return strings.Contains(name, "_orders_") }, Err: err})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if _, err := c.Publish(ctx, namespace, "orders", []byte("lost")); err == nil {
			t.Errorf("acknowledged by a disk that answers %v", err)
		}
		failed := false
		for _, err := range c.ReadRange(ctx, namespace, "orders", client.ReadOptions{}) {
			failed = err != nil
		}
		cancel()
		if !failed && rule.Hits() == 0 {
			t.Error("the fault took no effect")
		}
		for n := range 50 {
			publish(t, c, "other", value(err.Error(), n))
		}
		if got := read(t, c, "other", 0, 0); len(got) < 150 {
			t.Errorf("the other stream holds %d records", len(got))
		}
		rule.Remove()
	}
	image := b.powerCut(hard)
	s.start(image)
	c = s.connect()
	for n, r := range read(t, c, "orders", 0, 0) {
		if n < 100 && string(r.Payload) != value("o", n) {
			t.Fatalf("%.20q at %d", r.Payload, n)
		}
	}
	if _, next := bounds(t, c, "orders"); next < 100 {
		t.Fatalf("%d records are left of 100", next)
	}
	publish(t, c, "orders", "after")
}

// The disk fills under load, at whatever file: publishes are refused by type, reads go on, nothing is deleted or reset, a broker starts on
// the full disk, and when there is room again service goes on without a restart. All that was acknowledged is there.
//
// field case OPS-01 (one broker); matrix E9, E11, E12
func TestOPS01_AFullDiskStopsWritesCleanlyAndServiceResumes(t *testing.T) {
	s := newSite(t)
	s.store = rollEvery(32 << 10)
	mem := vfs.NewMem()
	b := s.start(mem)
	l := newLedger()
	c := s.connect()
	for life := range 2 {
		for round := range 4 {
			mem.SetCapacity(mem.Used() + int64(10+round*17)<<10)
			var full error
			counted := b.metric("felix_storage_full_total")
			for n := 0; full == nil || b.metric("felix_storage_full_total") == counted; n++ { // a slow one may fail for want of time
				v := value(fmt.Sprint("r", life, round), n)
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // the library tries again what had no effect
				r, err := c.Publish(ctx, namespace, "orders", []byte(v))
				cancel()
				l.heard(v, r, err)
				full = err
			}
			if !strings.Contains(full.Error(), "no space") && !errors.Is(full, context.DeadlineExceeded) {
				t.Fatalf("a full disk is told as %v", full)
			}
			if before := l.acknowledged(); len(read(t, c, "orders", 0, 0)) < before {
				t.Fatalf("fewer than %d records can be read", before)
			}
			if life == 0 && round == 3 { // and a start on the full disk
				b.stop()
				b = s.start(mem)
				c = s.connect()
				l.check(t, read(t, c, "orders", 0, 0))
			}
			mem.SetCapacity(vfs.Unlimited)
			v := value(fmt.Sprint("room", life, round), 0)
			l.heard(v, client.PublishResult{Offset: publish(t, c, "orders", v), HasOffset: true}, nil)
		}
		mem = b.powerCut(hard)
		b = s.start(mem)
		c = s.connect()
		l.check(t, read(t, c, "orders", 0, 0))
	}
}

// No file can be opened for a while: open connections go on, a roll that needs a file refuses its publish and harms nothing, reads of what is
// not open fail and work again later, and no log is taken for damaged.
//
// field case OPS-02 (files of one broker); matrix E19, E11
func TestOPS02_RunningOutOfDescriptorsIsSurvived(t *testing.T) {
	s := newSite(t, stream{name: "orders", shards: 4})
	s.store = rollEvery(8 << 10)
	b := s.start(vfs.NewMem())
	c := s.connect()
	l := newLedger()
	for n := range 60 {
		v := value("a", n)
		l.heard(v, client.PublishResult{Offset: publish(t, c, "orders", v), HasOffset: true}, nil)
	}
	rule := b.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallOpen, vfs.CallCreate, vfs.CallReadDir}, Err: syscall.EMFILE})
	refused := 0
	for n := 0; n < 400 && (refused < 5 || rule.Hits() == 0); n++ { // a slow one may fail for want of time
		v := value("b", n)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		r, err := c.Publish(ctx, namespace, "orders", []byte(v))
		cancel()
		l.heard(v, r, err)
		if err != nil {
			refused++
		}
	}
	if refused == 0 || rule.Hits() == 0 {
		t.Fatalf("%d refused, %d calls failed", refused, rule.Hits())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	_, _ = c.Read(ctx, namespace, "orders", client.ReadOptions{}) // may fail; must not be wrong
	cancel()
	rule.Remove()
	v := value("c", 0)
	begun := time.Now()
	l.heard(v, client.PublishResult{Offset: publish(t, c, "orders", v), HasOffset: true}, nil)
	if took := time.Since(begun); took > testkit.Figure(5*time.Second) {
		t.Errorf("service resumed after %v", took)
	}
	l.check(t, read(t, c, "orders", 0, 0))
	select {
	case err := <-b.damaged:
		t.Errorf("taken for damage: %v", err)
	default:
	}
	s.start(b.powerCut(hard))
	l.check(t, read(t, s.connect(), "orders", 0, 0))
}

// Eight writers race for the same next offset, many times over: one of them writes, the others are told the next offset, and none is missing.
//
// matrix J9
func TestJ9_OfWritersThatExpectTheSameOffsetOneWrites(t *testing.T) {
	s := newSite(t)
	s.start(vfs.NewMem())
	c := s.connect()
	const rounds = 30
	for round := range rounds {
		var won, lost int
		var mu sync.Mutex
		var all sync.WaitGroup
		for who := range 8 {
			all.Go(func() {
				_, err := c.PublishIf(t.Context(), namespace, "orders", id.Offset(round), [][]byte{[]byte(fmt.Sprint(who))})
				mu.Lock()
				defer mu.Unlock()
				var mismatch *client.OffsetMismatchError
				switch {
				case err == nil:
					won++
				case errors.As(err, &mismatch) && mismatch.Tail == id.Offset(round)+1:
					lost++
				default:
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		all.Wait()
		if won != 1 || lost != 7 {
			t.Fatalf("round %d: %d wrote, %d were told", round, won, lost)
		}
	}
	if got := read(t, c, "orders", 0, 0); len(got) != rounds {
		t.Fatalf("%d records", len(got))
	}
}
