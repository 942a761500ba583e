package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/felixd/felixd/client/testbroker"
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

func waitersOf(b *byteBudget) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting.len()
}

func TestBudgetServesInOrderAndNeverExceedsItsTotal(t *testing.T) {
	b := newByteBudget(10)
	ctx := within(t)
	held, err := b.take(ctx, b.share(), 25) // more than there is takes all
	if err != nil || held != 10 {
		t.Fatalf("%d, %v", held, err)
	}
	order := make(chan int64, 3)
	line := func(n int64, place int) {
		go func() {
			if _, err := b.take(ctx, b.share(), n); err == nil {
				order <- n
			}
		}()
		until(t, "a longer line", func() bool { return waitersOf(b) == place }) // it has to form in this order
	}
	line(8, 1)
	line(5, 2)
	line(1, 3)
	b.give(b.share(), 10)
	if n := await(t, "grant", order); n != 8 {
		t.Fatalf("%d bytes came first, want 8", n)
	}
	if len(order) != 0 { // 1 byte would fit, but 5 are before it
		t.Fatal("the line was overtaken")
	}
	b.give(b.share(), 8)
	if first, second := await(t, "grant", order), await(t, "grant", order); first+second != 6 {
		t.Fatalf("%d and %d", first, second)
	}
	b.give(b.share(), 6)
	if b.used != 0 {
		t.Fatalf("%d bytes are still taken", b.used)
	}
}

func TestCanceledWaiterLeavesTheLineToTheNext(t *testing.T) {
	b := newByteBudget(10)
	if _, err := b.take(within(t), b.share(), 6); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	big := make(chan error, 1)
	go func() { _, err := b.take(ctx, b.share(), 10); big <- err }()
	until(t, "a line", func() bool { return waitersOf(b) == 1 })
	small := make(chan error, 1)
	go func() { _, err := b.take(within(t), b.share(), 1); small <- err }()
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
	for name, reader := range readers {
		t.Run(name, func(t *testing.T) { interruptedReader(t, reader) })
	}
}

// readers are both kinds of frame readers.
var readers = map[string]func(r io.Reader, most int) *frameReader{"answers": newFrameReader, "events": newEventReader}

func interruptedReader(t *testing.T, reader func(r io.Reader, most int) *frameReader) {
	var sent []byte
	want := [][]byte{{}, []byte("abc"), bytes.Repeat([]byte("x"), 5000)}
	for _, p := range want {
		sent = append(wire.AppendHeader(sent, wire.Header{Length: uint32(len(p))}), p...)
	}
	f := reader(&choppy{rest: sent}, wire.MaxPayload)
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
	for _, reader := range readers {
		f := reader(bytes.NewReader(append(wire.AppendHeader(nil, wire.Header{Length: wire.MaxPayload}), 1, 2, 3)), wire.MaxPayload)
		if _, _, err := f.next(); err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
		if cap(f.body) > wire.FirstBodyAllocation {
			t.Fatalf("3 bytes made a buffer of %d", cap(f.body))
		}
		f = reader(bytes.NewReader(wire.AppendHeader(nil, wire.Header{Length: 1001})), 1000)
		_, _, err := f.next()
		if e := wantAs[*wire.FrameError](t, err); e.Kind != wire.TooLong {
			t.Fatal(err)
		}
	}
}

func TestFrameThatComesWithTheEndIsStillRead(t *testing.T) {
	whole := append(wire.AppendHeader(nil, wire.Header{Length: 40_000}), make([]byte, 40_000)...)
	for _, reader := range readers {
		f := reader(iotest.DataErrReader(bytes.NewReader(whole)), wire.MaxPayload) // the last bytes and io.EOF in one read
		if _, body, err := f.next(); err != nil || len(body) != 40_000 {
			t.Fatalf("%d bytes, %v", len(body), err)
		}
		if _, _, err := f.next(); err != io.EOF {
			t.Fatal(err)
		}
	}
}

func TestEventReaderGivesEachBodyAway(t *testing.T) {
	frame := func(b byte) []byte { return append(wire.AppendHeader(nil, wire.Header{Length: 1}), b) }
	f := newEventReader(bytes.NewReader(append(frame('a'), frame('b')...)), wire.MaxPayload)
	_, first, err := f.next()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.next(); err != nil || first[0] != 'a' {
		t.Fatalf("the next frame overwrote the one before: %q, %v", first, err)
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
		&NotLeaderError{Op: "op", NodeID: "n"}:                                                                   ErrNotLeader,
		&UnsupportedError{Op: "op"}:                                                                              ErrUnsupported,
		&OutcomeUnknownError{Op: "op", Err: io.EOF}:                                                              io.EOF,
		&ConnectionLostError{Op: "op", Err: io.EOF}:                                                              ErrConnectionLost,
		&SubscriptionLostError{Op: "op", Err: io.EOF}:                                                            ErrConnectionLost,
		&ProtocolError{Op: "op", Err: io.EOF}:                                                                    io.EOF,
		&ShardError{Err: &UnsupportedError{Op: "op"}}:                                                            ErrUnsupported,
		brokerError("op", wire.Refuse(wire.CodeLimitExceeded, "")):                                               ErrLimitExceeded,
		brokerError("op", wire.Refuse(wire.CodeStorage, "")):                                                     ErrOutcomeUnknown,
		brokerError("op", wire.Refuse(wire.CodeInvalidRequest, "")):                                              ErrInvalidRequest,
		brokerError("op", wire.Refuse(wire.CodeDraining, "")):                                                    ErrDraining,
		brokerError("op", wire.Refuse(wire.CodeShardUnavailable, "")):                                            ErrUnavailable,
		&ConnectError{Failures: []AddrFailure{{Addr: "op", Err: io.EOF}}}:                                        ErrUnreachable,
		&GaveUpError{Tries: 3, Err: &UnsupportedError{Op: "op"}}:                                                 ErrUnsupported,
		&ArgumentError{Op: "op", Argument: "value", Problem: "is too long"}:                                      ErrInvalidRequest,
		&LimitError{Op: "op", Limit: "streams", Most: 2}:                                                         ErrLimitExceeded,
		&FlushError{Op: "op", Failed: 2, Err: io.EOF}:                                                            io.EOF,
		&EnvError{Variable: "op", Problem: "is wrong", Err: io.EOF}:                                              io.EOF,
		&SubscribeAllError{Op: "op", Shards: []*ShardError{{Shard: 1, Err: io.EOF}, {Shard: 2, Err: ErrClosed}}}: ErrClosed,
	}
	for err, part := range map[error]string{
		&SubscriptionLaggedError{Op: "op", ResumeFrom: 7}:                                                  "the broker's queue was full",
		&SubscriptionLaggedError{Op: "op", ResumeFrom: 7, Local: true}:                                     "the client's queue was full",
		&SubscriptionLostError{Op: "op", Err: brokerError("", wire.Refuse(wire.CodeNotFound, ""))}:         "what it read is gone",
		&ShardMovedError{Op: "op"}:                                                                         "subscribe again",
		&ShardMovedError{Op: "op", NodeID: "n", Addr: "a:1"}:                                               "broker n at a:1",
		&CursorError{Op: "op", Requested: 3, Available: 5}:                                                 "offset 3 is gone, the oldest record kept is 5",
		&CursorError{Op: "op", Reason: wire.CursorInFuture}:                                                "past the end",
		&GaveUpError{Tries: 3, Err: errors.New("op failed")}:                                               "gave up after 3 tries",
		&SubscribeAllError{Op: "op", Shards: []*ShardError{{Err: io.EOF}, {Err: io.EOF}}}:                  "1 more shards",
		brokerError("op", wire.Refuse(wire.CodeOverloaded, "busy").WithReason(wire.ReasonTenantQuota, 20)): "may be repeated after 20ms",
		brokerError("op", wire.Refuse(wire.CodeNotLeader, "")):                                             "ask the owner",
	} {
		if text := err.Error(); !strings.Contains(text, "op") || !strings.Contains(text, part) {
			t.Errorf("%T says %q, which lacks the operation or %q", err, text, part)
		}
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

// A settlement that comes too late is not advised to be made again, whatever class the broker gives it.
func TestAStaleClaimIsNotSaidToBeRepeatable(t *testing.T) {
	for _, class := range []wire.Retry{wire.RetryRetry, wire.RetryFatal} {
		err := staleClaim(2, 7, 0, brokerError("ack", wire.Refuse(wire.CodeStaleClaim, "the record was not handed out").WithRetry(class)))
		wantIs(t, err, ErrStaleClaim)
		if text := err.Error(); strings.Contains(text, "repeated") || !strings.Contains(text, "leave the record") || Retryable(err) {
			t.Errorf("of class %v: %s", class, text)
		}
	}
}

// What is too long for a frame is refused before it is sent: the error matches that of a request that is at fault, and its advice is of the
// request that was made.
func TestWhatIsTooLongForAFrameIsAnInvalidRequestWithItsOwnAdvice(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	c := connect(t, b, func(o *Options) { o.MaxFrameBytes = 1000 })
	long := make([]byte, 2000)
	_, put := c.CachePutIf(within(t), "ns", "c", "k", long, IfAbsent(), 0)
	_, published := c.Publish(within(t), "ns", "s", long)
	for err, advice := range map[error]string{
		c.CachePut(within(t), "ns", "c", "k", long, 0): "make what it carries shorter",
		put:       "make what it carries shorter",
		published: "publish smaller batches",
	} {
		wantIs(t, err, ErrInvalidRequest)
		wantAs[*ArgumentError](t, err)
		if !strings.Contains(err.Error(), advice) || errors.Is(err, ErrOutcomeUnknown) || Retryable(err) {
			t.Errorf("%v: want %q", err, advice)
		}
	}
}
