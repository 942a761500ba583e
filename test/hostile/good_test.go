package hostile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
)

// goodClients is how many are at work beside an attack.
var goodClients = raced(20, 5)

// pace is how often each good client publishes and reads: often enough to see a disturbance of some milliseconds, seldom enough to leave the
// machine to the attack. At a landing no such disturbance can be seen.
func pace() time.Duration {
	switch {
	case effort.Full():
		return 20 * time.Millisecond
	case raceEnabled:
		return 200 * time.Millisecond
	}
	return 50 * time.Millisecond
}

// windows is how many stretches of time a measurement has: the median of their p99 ignores a pause that the machine made. At a landing, where no
// more than gross harm is judged, it is one.
func windows() int {
	if effort.Full() {
		return 5
	}
	return 1
}

// connect makes a real client, from 127.0.0.1.
func (h *house) connect(t testing.TB) *client.Client {
	t.Helper()
	return h.connectTo(t, h.Addr)
}

// connectTo makes one that reaches the broker at another address than the broker's own. A handshake that was given up because the machine was too
// slow for it is tried again: some brokers here allow no more than a second for it, and a client hears nothing of that.
func (h *house) connectTo(t testing.TB, addr string) (c *client.Client) {
	t.Helper()
	var err error
	if !eventually(t, "a good client connects", func() bool {
		ctx, cancel := timeout(patience)
		defer cancel()
		c, err = client.Connect(ctx, client.Options{Addrs: []string{addr}, TenantID: tenant, Token: goodToken, CAPEM: []byte(h.CA), DialTimeout: handshakeMost})
		return err == nil
	}) {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := timeout(patience)
		defer cancel()
		_ = c.Close(ctx) // what was not answered is the business of who asked
	})
	return c
}

// guests are good clients at work: each publishes a record, waits for its answer, and reads a cache entry, again and again. Any
// request that fails fails the test.
type guests struct {
	t      testing.TB
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	times []time.Duration // of requests since the last window began
	wrong error
}

// invite connects n good clients and puts them to work until the test ends. Whoever is late to sign in, where there is little time for it, comes
// again.
func (h *house) invite(t testing.TB, n int) *guests {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g := &guests{t: t, cancel: cancel}
	for i := range n {
		c := h.connect(t)
		eventually(t, "a good client is served", func() bool {
			_, err := c.Publish(ctx, namespace, "orders", []byte("here"))
			return err == nil && c.CachePut(ctx, namespace, "users", fmt.Sprint("good-", i), []byte("value"), 0) == nil
		})
		g.done.Go(func() { g.work(ctx, c, fmt.Sprint("good-", i)) })
	}
	t.Cleanup(g.leave)
	return g
}

func (g *guests) work(ctx context.Context, c *client.Client, key string) {
	tick := time.NewTicker(pace())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		_, err := c.Publish(ctx, namespace, "orders", []byte(key))
		published := time.Now()
		if err == nil {
			_, _, err = c.CacheGet(ctx, namespace, "users", key)
		}
		if ctx.Err() != nil {
			return
		}
		g.note(err, published.Sub(began), time.Since(published))
	}
}

func (g *guests) note(err error, times ...time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wrong = errors.Join(g.wrong, err); err == nil && len(g.times) < 1<<20 {
		g.times = append(g.times, times...)
	}
}

// leave ends the work and reports what went wrong in it.
func (g *guests) leave() {
	g.cancel()
	g.done.Wait()
	if g.wrong != nil {
		g.t.Errorf("good clients were disturbed: %v", g.wrong)
		g.wrong = nil
	}
}

// window begins a new stretch of time and returns the p99 of the one that ends; 0 when nothing was measured in it.
func (g *guests) window() time.Duration {
	g.mu.Lock()
	times := g.times
	g.times = make([]time.Duration, 0, cap(times))
	g.mu.Unlock()
	return percentile(times, 99)
}

// measure is the median p99 over some windows of the given length.
func (g *guests) measure(each time.Duration) time.Duration {
	var all []time.Duration
	g.window()
	for range windows() {
		all = append(all, g.stretch(each, nil))
	}
	return median(all)
}

// stretch lets a window last for so long, and until so much was measured that its p99 says something, or until over is closed.
func (g *guests) stretch(each time.Duration, over <-chan struct{}) (p99 time.Duration) {
	end, late, look := time.NewTimer(each), time.NewTimer(patience), time.NewTicker(5*time.Millisecond)
	defer end.Stop()
	defer late.Stop()
	defer look.Stop()
	for lasted := false; !lasted || g.measured() < 2*goodClients; {
		select {
		case <-end.C:
			lasted = true
		case <-look.C:
		case <-over:
			return g.window()
		case <-late.C:
			g.t.Error("the good clients got nothing done")
			return g.window()
		}
	}
	return g.window()
}

// measured is how many requests the window has so far; what has failed ends the wait for more.
func (g *guests) measured() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wrong != nil {
		return math.MaxInt
	}
	return len(g.times)
}

// gate lets attackers through, or holds them back while the normal state is measured.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed when they may pass
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) pass() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	<-open
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		if !open {
			g.open = make(chan struct{})
		}
	default:
		if open {
			close(g.open)
		}
	}
}

// beside measures the good clients in turns while an attack is held back, and while it goes on, until it is over. What else the
// machine does meets both alike. At a landing the attack is held back once, and is not interrupted then.
func (g *guests) beside(a *attackers, each time.Duration) (pairs []pair) {
	g.window()
	normal := g.stretch(each, nil)
	for running := true; running; {
		a.set(true)
		attacked := g.stretch(2*each, a.over)
		select {
		case <-a.over:
			running = false
		default:
		}
		if attacked > 0 {
			pairs = append(pairs, pair{normal, attacked})
		}
		if running && effort.Full() {
			a.set(false)
			g.window()
			normal = g.stretch(each, nil)
		}
	}
	g.window()
	g.stretch(0, nil) // and they go on
	return pairs
}

// pair is p99 of the good clients in two neighbouring windows.
type pair struct{ normal, attacked time.Duration }

// harmless is how slow a good client's p99 may be in any case. Attackers, good clients and broker share the machine's cores here:
// below it, a difference says how busy they are and not that anybody waited for an attacker. At a landing other packages are tested on the
// same cores, perhaps with the race detector, and what is found is whoever waits for an attack to end or for a time-out.
func harmless() time.Duration {
	switch {
	case !effort.Full():
		return 2 * time.Second
	case raceEnabled:
		return 500 * time.Millisecond
	}
	return 25 * time.Millisecond
}

// slower reports whether p99 under attack is more than twice the normal one, and not harmless.
func (p pair) slower() bool { return p.attacked > max(2*p.normal, harmless()) }

// disturbed reports whether most pairs are slower.
func disturbed(pairs []pair) bool {
	slower := 0
	for _, p := range pairs {
		if p.slower() {
			slower++
		}
	}
	return 2*slower > len(pairs)
}

// untouched requires that p99 under attack is at most twice the normal one, in most pairs.
func (g *guests) untouched(pairs []pair) {
	g.t.Helper()
	var normal, attacked []time.Duration
	for _, p := range pairs {
		normal, attacked = append(normal, p.normal), append(attacked, p.attacked)
	}
	g.t.Logf("p99 of good clients, median of %d windows: %v normally, %v under attack", len(pairs), median(normal), median(attacked))
	if disturbed(pairs) {
		g.t.Errorf("p99 of good clients is more than twice the normal one, and %v, in most windows: %v", harmless(), pairs)
	}
}

// steady compares the good clients before and during something that lasts: sick is called when the normal state was measured, and
// what it began goes on. It is measured again when it looks bad, since the machine may have been busy with something else.
func (g *guests) steady(each time.Duration, sick func()) {
	g.t.Helper()
	p := pair{normal: g.measure(each)}
	sick()
	for try := 0; ; try++ {
		p.attacked = g.measure(each)
		if !p.slower() || try == 2 {
			g.untouched([]pair{p})
			return
		}
	}
}
