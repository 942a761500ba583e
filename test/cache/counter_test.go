package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage/vfs"
)

// addsOf are the adds of one counter, each of a power of two of its own: the sum says which of them were done.
const addsOf = 60

// tally is what one counter's client was told.
type tally struct{ acknowledged, unknown int64 }

// Adds with answers that get lost: the caller gives up one of twenty before its answer, and the broker is killed again and again. Each
// add that was acknowledged is in the sum once, each of unknown outcome once or not at all, and nothing else is.
//
// field case CAC-12 (one broker); matrix H1
func TestCAC12_NoAddIsDoneTwice(t *testing.T) {
	counters, kills := 34, 4
	if effort.Full() {
		counters, kills = 167, 20
	}
	rnd := rand.New(rand.NewPCG(12, 12))
	s := newSite(t, 2)
	b := s.start(vfs.NewMem())
	var clients []*client.Client
	for range 4 {
		clients = append(clients, s.connect())
	}
	tallies := make([]tally, counters)
	var next, done atomic.Int64
	var all sync.WaitGroup
	for n := range 8 {
		chance := rand.New(rand.NewPCG(12, uint64(n)))
		all.Go(func() {
			for {
				counter := int(next.Add(1)) - 1
				if counter >= counters {
					return
				}
				for i := range addsOf {
					addPower(t, clients[n%len(clients)], fmt.Sprint("c", counter), 1<<i, chance, &tallies[counter])
					done.Add(1)
				}
			}
		})
	}
	for kill := range kills {
		at := int64((kill + 1) * counters * addsOf / (kills + 1))
		testkit.Eventually(t, "adds are answered", func() bool { return done.Load() >= at })
		leave := (*vfs.Mem).Clone
		if kill%2 == 1 {
			leave = leaves(rnd)
		}
		b = s.start(b.crash(leave))
	}
	all.Wait()
	ctx, cancel := testkit.Within()
	defer cancel()
	var unknown, applied int
	for n, x := range tallies {
		got, found, err := clients[0].CounterGet(ctx, namespace, users, fmt.Sprint("c", n))
		if err != nil || !found {
			t.Fatalf("counter %d: %v, %v", n, found, err)
		}
		if x.acknowledged&^got != 0 || got&^(x.acknowledged|x.unknown) != 0 {
			t.Errorf("counter %d is %b; acknowledged %b, of unknown outcome %b", n, got, x.acknowledged, x.unknown)
		}
		unknown += ones(x.unknown)
		applied += ones(got & x.unknown)
	}
	if unknown == 0 {
		t.Error("it proves little: every add was answered")
	}
	t.Logf("%d adds, %d of unknown outcome, of which %d were done", counters*addsOf, unknown, applied)
}

func ones(set int64) (n int) {
	for ; set != 0; set &= set - 1 {
		n++
	}
	return n
}

// addPower adds once, and again only when it is certain that nothing was done.
func addPower(t *testing.T, c *client.Client, key string, delta int64, chance *rand.Rand, x *tally) {
	for {
		ctx, cancel := testkit.Within()
		if chance.IntN(20) == 0 {
			cancel()
			ctx, cancel = context.WithTimeout(context.Background(), time.Duration(chance.IntN(2000))*time.Microsecond)
		}
		_, err := c.CounterAdd(ctx, namespace, users, key, delta)
		cancel()
		switch {
		case err == nil:
			x.acknowledged |= delta
		case errors.Is(err, client.ErrOutcomeUnknown):
			x.unknown |= delta
		case t.Failed():
		default:
			testkit.After(time.Millisecond)
			continue
		}
		return
	}
}
