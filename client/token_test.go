package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// mint is an issuer under a test's control: each fetch gives the next token, good for an hour, or fails.
type mint struct {
	clock   *clock
	fetched atomic.Int64
	fail    atomic.Bool
	began   chan struct{} // one for each fetch
	hold    chan struct{} // if set, a fetch waits for it
}

var errMint = errors.New("the issuer is down")

func (m *mint) fetch(ctx context.Context) (Token, error) {
	n := m.fetched.Add(1)
	m.began <- struct{}{}
	if m.hold != nil {
		select {
		case <-m.hold:
		case <-ctx.Done():
			return Token{}, ctx.Err()
		}
	}
	if m.fail.Load() {
		return Token{}, errMint
	}
	return Token{Value: fmt.Sprintf("token-%d", n), Expires: m.clock.now().Add(time.Hour)}, nil
}

func newMint() (*mint, *TokenSource) {
	m := &mint{clock: newClock(), began: make(chan struct{}, 100)}
	s := NewTokenSource(m.fetch)
	s.now, s.jitter = m.clock.now, func(time.Duration) time.Duration { return 0 }
	return m, s
}

func wantToken(t *testing.T, s *TokenSource, want string) {
	t.Helper()
	if got, err := s.Token(within(t)); err != nil || got != want {
		t.Fatalf("token %q, %v, want %q", got, err, want)
	}
}

func TestTokenIsRenewedOnceTwoThirdsOfItsLifeAreOver(t *testing.T) {
	m, s := newMint()
	wantToken(t, s, "token-1")
	m.clock.move(40*time.Minute - time.Second)
	wantToken(t, s, "token-1")
	m.clock.move(time.Second)
	wantToken(t, s, "token-2")
	wantToken(t, s, "token-2")
	if n := m.fetched.Load(); n != 2 {
		t.Fatalf("%d fetches", n)
	}
}

func TestRenewalIsSpreadOverATwelfthOfTheLife(t *testing.T) {
	m, s := newMint()
	var ceiling time.Duration
	s.jitter = func(c time.Duration) time.Duration { ceiling = c; return c }
	wantToken(t, s, "token-1")
	if ceiling != 5*time.Minute {
		t.Fatalf("jitter of up to %v", ceiling)
	}
	m.clock.move(45*time.Minute - time.Second)
	wantToken(t, s, "token-1")
	m.clock.move(time.Second)
	wantToken(t, s, "token-2")
}

func TestManyCallersShareOneFetch(t *testing.T) {
	m, s := newMint()
	m.hold = make(chan struct{})
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			if got, err := s.Token(within(t)); err != nil || got != "token-1" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	close(m.hold)
	callers.Wait()
	if n := m.fetched.Load(); n != 1 {
		t.Fatalf("%d fetches", n)
	}
}

func TestOthersGoOnWithTheOldTokenWhileOneRenewsIt(t *testing.T) {
	m, s := newMint()
	wantToken(t, s, "token-1")
	m.clock.move(50 * time.Minute)
	m.hold = make(chan struct{})
	renewed := make(chan string, 1)
	go func() {
		token, _ := s.Token(within(t))
		renewed <- token
	}()
	await(t, "first fetch", m.began)
	await(t, "second fetch", m.began)
	wantToken(t, s, "token-1")
	close(m.hold)
	if got := await(t, "renewal", renewed); got != "token-2" {
		t.Fatal(got)
	}
}

func TestOldTokenStaysUntilItExpiresWhileRenewalFails(t *testing.T) {
	m, s := newMint()
	wantToken(t, s, "token-1")
	m.fail.Store(true)
	m.clock.move(48 * time.Minute)
	wantToken(t, s, "token-1")
	wantToken(t, s, "token-1") // within the pause nobody asks again
	if n := m.fetched.Load(); n != 2 {
		t.Fatalf("%d fetches, want one failed one", n)
	}
	m.clock.move(renewPauseMax)
	wantToken(t, s, "token-1")
	if n := m.fetched.Load(); n != 3 {
		t.Fatalf("%d fetches after the pause", n)
	}
	m.clock.move(12 * time.Minute) // expired
	_, err := s.Token(within(t))
	wantIs(t, err, errMint)
	m.fail.Store(false)
	wantToken(t, s, "token-5")
}

func TestTokenThatIsNoneIsRefusedAtTheSource(t *testing.T) {
	for problem, token := range map[string]Token{"empty": {}, "expired": {Value: "x", Expires: time.Unix(1, 0)}} {
		s := NewTokenSource(func(context.Context) (Token, error) { return token, nil })
		if _, err := s.Token(within(t)); err == nil {
			t.Errorf("an %s token was taken", problem)
		}
	}
	s := NewTokenSource(func(context.Context) (Token, error) { return Token{Value: "for ever"}, nil })
	wantToken(t, s, "for ever")
}

func TestCanceledCallerLeavesTheFetchToTheNext(t *testing.T) {
	m, s := newMint()
	m.hold = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error, 1)
	go func() { _, err := s.Token(ctx); first <- err }()
	await(t, "fetch", m.began)
	cancel()
	wantIs(t, await(t, "cancellation", first), context.Canceled)
	close(m.hold)
	wantToken(t, s, "token-2")
}

// A stream keeps the token it began with; only what is opened later shows the new one (decision 43).
func TestLaneOpenedWithAnOldTokenKeepsWorkingAndNewOnesUseTheNewToken(t *testing.T) {
	m, source := newMint()
	var mu sync.Mutex
	var seen []string
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, OnAuth: func(a *wire.Auth) *wire.Refusal {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, a.Token)
		return nil
	}})
	c := connect(t, b, func(o *Options) { o.Token, o.TokenSource, o.PublishStreams = "", source, 1 })
	ctx := within(t)
	publish := func() {
		t.Helper()
		if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	publish()
	lane := laneOf(t, c)
	m.clock.move(2 * time.Hour) // long expired
	publish()
	if laneOf(t, c) != lane || !lane.alive() {
		t.Fatal("the stream did not outlive its token")
	}
	subscribe(t, c, SubscribeOptions{})
	mu.Lock()
	defer mu.Unlock()
	if last := seen[len(seen)-1]; seen[0] != "token-1" || last != "token-2" {
		t.Fatalf("tokens shown: %v", seen)
	}
}

func TestRevokedConnectionClosesItsLanesAndTheNextUsesAFreshToken(t *testing.T) {
	noLeaks(t)
	_, source := newMint()
	var revoked atomic.Value
	revoked.Store("")
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, OnAuth: func(a *wire.Auth) *wire.Refusal {
		if a.Token != revoked.Load() {
			return nil
		}
		r := wire.Refuse(wire.CodeRevoked, "unauthorized: the token was revoked")
		return &r
	}})
	c := connect(t, b, func(o *Options) { o.Token, o.TokenSource, o.PublishStreams = "", source, 1 })
	ctx := within(t)
	if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	lane := laneOf(t, c)
	revoked.Store("token-1")
	b.Drop(transport.CloseRevoked)
	await(t, "end of the lane", lane.closed)
	if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil { // token-1 is refused, token-2 is fetched
		t.Fatal(err)
	}
	wantToken(t, source, "token-2")
}
