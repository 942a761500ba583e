package cache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage/vfs"
)

const (
	writers     = 50
	connections = 10
)

// outcome is what one of many writers of a key was told.
type outcome struct {
	result client.ConditionResult
	err    error
}

// contest has all writers write one key at once, each its own number, under one condition; meanwhile is done when some of them are answered.
func contest(s *site, key string, cond client.Condition, meanwhile func()) []outcome {
	clients := make([]*client.Client, connections)
	for n := range clients {
		clients[n] = s.connect()
	}
	out := make([]outcome, writers)
	start, some := make(chan struct{}), make(chan struct{}, writers)
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			<-start
			ctx, cancel := testkit.Within()
			defer cancel()
			for {
				r, err := clients[n%connections].CachePutIf(ctx, namespace, users, key, fmt.Append(nil, n), cond, 0)
				if err != nil && !errors.Is(err, client.ErrOutcomeUnknown) && ctx.Err() == nil {
					testkit.After(time.Millisecond) // it was refused: nothing was done
					continue
				}
				out[n] = outcome{r, err}
				break
			}
			some <- struct{}{}
		})
	}
	close(start)
	meanwhile()
	all.Wait()
	return out
}

// winner checks that one of the writers won, and that everybody else knows: those that were told that they did not, of the version that it
// wrote; those that were told nothing may have won instead of anybody who was told so.
func winner(t *testing.T, s *site, key string, all []outcome) client.CacheEntry {
	t.Helper()
	e, won := standing(t, s, key, all)
	if !won {
		t.Fatalf("nobody won: %+v", e)
	}
	return e
}

// standing is the same where a crash may have come before anything was durable: then nobody was told anything, and nobody won.
func standing(t *testing.T, s *site, key string, all []outcome) (e client.CacheEntry, anybody bool) {
	t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	e = testkit.Must(s.connect().CacheGetVersion(ctx, namespace, users, key))(t)
	won, unknown := -1, 0
	for n, x := range all {
		switch {
		case errors.Is(x.err, client.ErrOutcomeUnknown):
			unknown++
		case x.err != nil:
			t.Fatalf("writer %d: %v", n, x.err)
		case x.result.Applied && won >= 0:
			t.Fatalf("writers %d and %d won", won, n)
		case x.result.Applied:
			if won = n; x.result.Version != e.Version || string(e.Value) != fmt.Sprint(n) {
				t.Fatalf("writer %d won with version %d; the key has %q of version %d", n, x.result.Version, e.Value, e.Version)
			}
		case x.result.Version != e.Version || !x.result.HasVersion:
			t.Fatalf("writer %d was told %+v; the key has version %d", n, x.result, e.Version)
		}
	}
	if !e.Found && unknown < len(all) || won < 0 && unknown == 0 {
		t.Fatalf("nobody won: %+v", e)
	}
	t.Logf("writer %d of %d was told that it won, %d were told nothing", won, writers, unknown)
	return e, e.Found
}

// matrix G20, G21
func TestOfFiftyConditionalWritersOneWins(t *testing.T) {
	s := newSite(t, 1)
	b := s.start(vfs.NewMem())
	b.fault.Set([]vfs.Rule{{Calls: []vfs.Call{vfs.CallSync}, Delay: 4 * time.Millisecond}}) // so that the first is not durable when the others are judged
	e := winner(t, s, "k", contest(s, "k", client.IfAbsent(), func() {}))
	next := winner(t, s, "k", contest(s, "k", client.IfVersion(e.Version), func() {}))
	if next.Version <= e.Version {
		t.Fatalf("version %d, then %d", e.Version, next.Version)
	}
}

// The broker is killed, or its power is cut, while the first writes wait for the disk. Nobody's write is sent again by the library; who
// was told nothing looks, and finds what became of it.
//
// matrix G20, G21
func TestOfFiftyConditionalWritersOneWinsOverACrash(t *testing.T) {
	const rounds = 6
	rnd := rand.New(rand.NewPCG(5, 5))
	s := newSite(t, 1)
	b := s.start(vfs.NewMem())
	for round := range rounds {
		key := fmt.Sprint("k", round)
		rule := b.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", From: 1 + round%3, Block: true})
		all := contest(s, key, client.IfAbsent(), func() {
			if round%3 == 0 {
				<-rule.Reached()
			} else {
				testkit.After(time.Duration(rnd.IntN(15)) * time.Millisecond)
			}
			leave := (*vfs.Mem).Clone
			if round%2 == 0 {
				leave = leaves(rnd)
			}
			image := b.mains.Cut(leave)
			rule.Release()
			rule.Remove()
			b.crash(leave)
			b = s.start(image)
		})
		e, won := standing(t, s, key, all)
		if !won {
			e = winner(t, s, key, contest(s, key, client.IfAbsent(), func() {}))
		}
		winner(t, s, key, contest(s, key, client.IfVersion(e.Version), func() {}))
	}
}
