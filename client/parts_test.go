package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

func TestFIFOKeepsOrderThroughRemovals(t *testing.T) {
	var q fifo[int]
	var model []int
	for step := range 2000 {
		if step%3 != 2 || len(model) == 0 {
			q.push(step)
			model = append(model, step)
		} else {
			i := step % len(model)
			if got := q.remove(i); got != model[i] {
				t.Fatalf("removed %d, want %d", got, model[i])
			}
			model = slices.Delete(model, i, i+1)
		}
		if q.len() != len(model) {
			t.Fatalf("%d items, want %d", q.len(), len(model))
		}
	}
	if got := q.drain(); !slices.Equal(got, model) || q.len() != 0 {
		t.Fatalf("drained %v, want %v", got, model)
	}
}

func TestFIFODoesNotGrowWithUse(t *testing.T) {
	var q fifo[int]
	for i := range 100_000 {
		q.push(i)
		if i >= 10 {
			q.remove(0)
		}
	}
	if cap(q.items) > 64 {
		t.Fatalf("10 items hold room for %d", cap(q.items))
	}
}

func TestBudgetServesInOrderAndNeverExceedsItsTotal(t *testing.T) {
	b := newByteBudget(10)
	ctx := within(t)
	held, err := b.take(ctx, 25) // more than there is takes all
	if err != nil || held != 10 {
		t.Fatalf("%d, %v", held, err)
	}
	order := make(chan int64, 3)
	line := func(n int64, place int) {
		go func() {
			if _, err := b.take(ctx, n); err == nil {
				order <- n
			}
		}()
		for { // the line has to form in this order
			b.mu.Lock()
			waiting := b.waiting.len()
			b.mu.Unlock()
			if waiting == place {
				return
			}
			if ctx.Err() != nil {
				t.Error("nobody came to wait")
				return
			}
		}
	}
	line(8, 1)
	line(5, 2)
	line(1, 3)
	b.give(10)
	if n := await(t, "grant", order); n != 8 {
		t.Fatalf("%d bytes came first, want 8", n)
	}
	if len(order) != 0 { // 1 byte would fit, but 5 are before it
		t.Fatal("the line was overtaken")
	}
	b.give(8)
	if first, second := await(t, "grant", order), await(t, "grant", order); first+second != 6 {
		t.Fatalf("%d and %d", first, second)
	}
	b.give(6)
	if b.used != 0 {
		t.Fatalf("%d bytes are still taken", b.used)
	}
}

func TestCanceledWaiterLeavesTheLineToTheNext(t *testing.T) {
	b := newByteBudget(10)
	if _, err := b.take(within(t), 6); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	big := make(chan error, 1)
	go func() { _, err := b.take(ctx, 10); big <- err }()
	for {
		b.mu.Lock()
		waiting := b.waiting.len()
		b.mu.Unlock()
		if waiting == 1 {
			break
		}
	}
	small := make(chan error, 1)
	go func() { _, err := b.take(within(t), 1); small <- err }()
	cancel()
	wantIs(t, await(t, "cancellation", big), context.Canceled)
	if err := await(t, "grant", small); err != nil {
		t.Fatal(err)
	}
}

// choppy returns a timeout before each byte, like a stream with a deadline.
type choppy struct {
	rest []byte
	stop bool
}

func (c *choppy) Read(p []byte) (int, error) {
	if c.stop = !c.stop; c.stop {
		return 0, os.ErrDeadlineExceeded
	}
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:1], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func TestFrameReaderGoesOnAfterEveryInterruption(t *testing.T) {
	var sent []byte
	want := [][]byte{{}, []byte("abc"), bytes.Repeat([]byte("x"), 5000)}
	for _, p := range want {
		sent = append(wire.AppendHeader(sent, wire.Header{Length: uint32(len(p))}), p...)
	}
	f := newFrameReader(&choppy{rest: sent})
	for _, p := range want {
		for {
			_, got, err := f.next()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			if err != nil || !bytes.Equal(got, p) {
				t.Fatalf("%d bytes, %v, want %d", len(got), err, len(p))
			}
			break
		}
	}
	for {
		if _, _, err := f.next(); err == io.EOF {
			return
		} else if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

func TestFrameReaderDoesNotAllocateByTheDeclaredLength(t *testing.T) {
	f := newFrameReader(bytes.NewReader(append(wire.AppendHeader(nil, wire.Header{Length: wire.MaxPayload}), 1, 2, 3)))
	if _, _, err := f.next(); err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	if cap(f.body) > wire.FirstBodyAllocation {
		t.Fatalf("3 bytes made a buffer of %d", cap(f.body))
	}
	f = newFrameReader(bytes.NewReader(wire.AppendHeader(nil, wire.Header{Length: wire.MaxPayload + 1})))
	_, _, err := f.next()
	if e := wantAs[*wire.FrameError](t, err); e.Kind != wire.TooLong {
		t.Fatal(err)
	}
}

func TestPausesGrowWithFullJitterAndHeedTheBroker(t *testing.T) {
	var ceilings []time.Duration
	c := &Client{jitter: func(ceiling time.Duration) time.Duration {
		ceilings = append(ceilings, ceiling)
		return ceiling / 4
	}}
	for try := 1; try <= 6; try++ {
		c.pause(try, io.EOF)
	}
	want := []time.Duration{200, 400, 800, 1600, 2000, 2000}
	for i, ms := range want {
		if ceilings[i] != ms*time.Millisecond {
			t.Fatalf("ceilings %v", ceilings)
		}
	}
	if p := c.pause(1, &BrokerError{RetryAfter: 3 * time.Second}); p != 3*time.Second {
		t.Fatalf("pause %v although the broker asked for 3s", p)
	}
}

func TestOnlyWhatMaySucceedLaterIsTriedAgain(t *testing.T) {
	refused := func(code wire.Code) error { return brokerError("x", wire.Refuse(code, "")) }
	dial := func(kind transport.DialKind) error {
		return &ConnectError{Failures: []AddrFailure{{Err: &transport.DialError{Kind: kind}}}}
	}
	for err, want := range map[error]bool{
		refused(wire.CodeShardUnavailable):        true,
		refused(wire.CodeNotFound):                true,
		refused(wire.CodeOverloaded):              true,
		refused(wire.CodeDraining):                true,
		refused(wire.CodeUnknown):                 false,
		&BrokerError{Op: "without code"}:          true,
		refused(wire.CodeForbidden):               false,
		refused(wire.CodeNotLeader):               false,
		refused(wire.CodeInternal):                false,
		dial(transport.DialUnreachable):           true,
		dial(transport.DialRefused):               true,
		dial(transport.DialTLS):                   false,
		&ConnectionLostError{Err: io.EOF}:         true,
		&UnsupportedError{}:                       false,
		&ProtocolError{}:                          false,
		&CursorError{Reason: wire.CursorInFuture}: false,
	} {
		if got := repeatable(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

func TestEveryErrorSaysWhatWasTriedAndMatchesItsMark(t *testing.T) {
	errs := map[error]error{
		&NotLeaderError{Op: "op", NodeID: "n"}:                            ErrNotLeader,
		&UnsupportedError{Op: "op"}:                                       ErrUnsupported,
		&OutcomeUnknownError{Op: "op", Err: io.EOF}:                       io.EOF,
		&ConnectionLostError{Op: "op", Err: io.EOF}:                       ErrConnectionLost,
		&SubscriptionLostError{Op: "op", Err: io.EOF}:                     ErrConnectionLost,
		&ProtocolError{Op: "op", Err: io.EOF}:                             io.EOF,
		&ShardError{Err: &UnsupportedError{Op: "op"}}:                     ErrUnsupported,
		brokerError("op", wire.Refuse(wire.CodeLimitExceeded, "")):        ErrLimitExceeded,
		brokerError("op", wire.Refuse(wire.CodeStorage, "")):              ErrOutcomeUnknown,
		brokerError("op", wire.Refuse(wire.CodeInvalidRequest, "")):       ErrInvalidRequest,
		brokerError("op", wire.Refuse(wire.CodeDraining, "")):             ErrDraining,
		brokerError("op", wire.Refuse(wire.CodeShardUnavailable, "")):     ErrUnavailable,
		&ConnectError{Failures: []AddrFailure{{Addr: "op", Err: io.EOF}}}: ErrUnreachable,
	}
	for err, mark := range errs {
		if !errors.Is(err, mark) || !bytes.Contains([]byte(err.Error()), []byte("op")) {
			t.Errorf("%v (%T) does not match %v or name the operation", err, err, mark)
		}
	}
	if errors.Is(brokerError("op", wire.Refuse(wire.CodeForbidden, "")), ErrNotFound) {
		t.Error("forbidden matches not found")
	}
}
