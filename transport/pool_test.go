package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quic-go/quic-go"
)

// poolOf makes a pool towards h and counts its dials. Server ends are accepted as they come.
func poolOf(t *testing.T, h *house, size int) (p *Pool, dials *atomic.Int64) {
	t.Helper()
	o := h.options(t, ClientTLSOptions{})
	dials = new(atomic.Int64)
	p = NewPool(size, func(ctx context.Context) (*quic.Conn, error) {
		dials.Add(1)
		return DialConn(ctx, o)
	})
	t.Cleanup(p.Close)
	go func() {
		for {
			if _, err := h.Accept(context.Background()); err != nil {
				return
			}
		}
	}()
	return p, dials
}

// mission 188
func TestPoolHandsItsConnectionsOutInTurn(t *testing.T) {
	const size, rounds = 4, 10
	h := openHouse(t, Policy{})
	p, dials := poolOf(t, h, size)
	if p.Size() != size || dials.Load() != 0 {
		t.Fatalf("size %d, %d dials before any use", p.Size(), dials.Load())
	}
	used := map[*quic.Conn]int{}
	for i := range size * rounds {
		used[must[*quic.Conn](t)(p.Acquire(within(t)))]++
		if want := min(i+1, size); int(dials.Load()) != want {
			t.Fatalf("%d dials after %d uses, want %d", dials.Load(), i+1, want)
		}
	}
	if len(used) != size {
		t.Fatalf("%d connections, want %d", len(used), size)
	}
	for _, n := range used {
		if n != rounds {
			t.Errorf("a connection was used %d times, want %d", n, rounds)
		}
	}
}

func TestPoolReplacesADeadConnectionAndKeepsTheOthers(t *testing.T) {
	h := openHouse(t, Policy{})
	p, dials := poolOf(t, h, 2)
	a, b := must[*quic.Conn](t)(p.Acquire(within(t))), must[*quic.Conn](t)(p.Acquire(within(t)))
	Close(a, CloseProtocol)
	again, same := must[*quic.Conn](t)(p.Acquire(within(t))), must[*quic.Conn](t)(p.Acquire(within(t)))
	if again == a || again.Context().Err() != nil || same != b || dials.Load() != 3 {
		t.Errorf("replaced %v, kept %v, %d dials", again != a, same == b, dials.Load())
	}
}

func TestUsersThatMeetAtAConnectionShareOneDial(t *testing.T) {
	h := openHouse(t, Policy{})
	p, dials := poolOf(t, h, 1)
	var users sync.WaitGroup
	for range 32 {
		users.Go(func() {
			if _, err := p.Acquire(within(t)); err != nil {
				t.Error(err)
			}
		})
	}
	users.Wait()
	if dials.Load() != 1 {
		t.Errorf("%d dials", dials.Load())
	}
}

func TestFailedDialIsReportedAndTriedAgain(t *testing.T) {
	h := openHouse(t, Policy{})
	good := h.options(t, ClientTLSOptions{})
	broken := errors.New("broken")
	first := true
	p := NewPool(1, func(ctx context.Context) (*quic.Conn, error) {
		if first {
			first = false
			return nil, broken
		}
		return DialConn(ctx, good)
	})
	defer p.Close()
	if _, err := p.Acquire(within(t)); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	must[*quic.Conn](t)(p.Acquire(within(t)))
}

func TestWaitingForAnothersDialCanBeGivenUp(t *testing.T) {
	dialing := make(chan struct{})
	p := NewPool(1, func(ctx context.Context) (*quic.Conn, error) {
		close(dialing)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	result := make(chan error, 1)
	go func() {
		_, err := p.Acquire(context.Background())
		result <- err
	}()
	<-dialing
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the waiter got %v", err)
	}
	p.Close() // ends the dial in progress
	if err := <-result; !errors.Is(err, ErrPoolClosed) {
		t.Errorf("the dialer got %v", err)
	}
}

func TestClosedPoolClosesItsConnectionsAndGivesNoMore(t *testing.T) {
	h := openHouse(t, Policy{})
	p, _ := poolOf(t, h, 3)
	var conns []*quic.Conn
	for range 2 {
		conns = append(conns, must[*quic.Conn](t)(p.Acquire(within(t))))
	}
	p.Close()
	p.Close()
	for _, conn := range conns {
		if code, remote, ok := CloseCode(ended(t, conn)); !ok || remote || code != CloseShutdown {
			t.Errorf("ended with %v", context.Cause(conn.Context()))
		}
	}
	if _, err := p.Acquire(within(t)); !errors.Is(err, ErrPoolClosed) {
		t.Errorf("acquire after close: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a pool of nothing was made")
		}
	}()
	NewPool(0, nil)
}
