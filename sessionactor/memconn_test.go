package sessionactor

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/actors"
)

var (
	errReset   = errors.New("the writer broke the stream off")
	errStopped = errors.New("the reader stopped the stream")
)

// half is one direction of a stream in memory: exactly the bytes that were written come out, in pieces as small as chunk says.
// The writer is held back while window bytes wait to be read, as QUIC's flow control does.
type half struct {
	clock  actors.Clock
	ctx    context.Context // ends when the reader has stopped it, or it was finished
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	changed  sync.Cond
	buf      []byte
	read     int // bytes of buf that were read
	window   int
	chunk    int // at most so many bytes for one Read
	unsent   bool
	most     int // bytes that may be tried since a write, 0: any number
	tried    int
	writing  bool
	finished bool
	broken   error // for the reader: it was reset, or the connection is gone
	stopped  error // for the writer
	expired  bool
	timer    actors.Timer
	began    func() // told of the first Read
}

func newHalf(conn context.Context, clock actors.Clock, window int) *half {
	h := &half{clock: clock, window: window, chunk: 1 << 30}
	h.changed.L = &h.mu
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	context.AfterFunc(conn, func() { h.fail(context.Cause(conn)) })
	return h
}

// fail ends both sides: the connection is gone.
func (h *half) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken == nil {
		h.broken = err
	}
	if h.stopped == nil {
		h.stopped = err
	}
	h.cancel(err)
	h.changed.Broadcast()
}

func (h *half) Read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.began != nil {
		h.began()
		h.began = nil
	}
	for {
		switch waiting := len(h.buf) - h.read; {
		case h.broken != nil:
			return 0, h.broken
		case h.expired:
			return 0, os.ErrDeadlineExceeded
		case waiting > 0:
			n := copy(p[:min(len(p), h.chunk)], h.buf[h.read:])
			if h.read += n; h.read == len(h.buf) {
				h.buf, h.read = h.buf[:0], 0
			}
			h.changed.Broadcast()
			return n, nil
		case h.finished:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

func (h *half) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writing = true
	defer func() { h.writing = false }()
	done := 0
	for done < len(p) {
		if err := h.refused(); err != nil {
			return done, err
		}
		n := min(len(p)-done, h.window-(len(h.buf)-h.read))
		if n <= 0 {
			h.changed.Wait()
			continue
		}
		h.append(p[done : done+n])
		done += n
	}
	h.tried = 0
	return done, h.refused()
}

// TryWriteAll implements SendStream.
func (h *half) TryWriteAll(p []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.refused(); err != nil {
		return err
	}
	if h.unsent || h.most > 0 && h.tried+len(p) > h.most {
		return ErrUnsent
	}
	if h.writing || len(h.buf)-h.read+len(p) > h.window {
		return ErrWouldBlock
	}
	h.tried += len(p)
	h.append(p)
	return nil
}

func (h *half) append(p []byte) {
	if h.read > 0 {
		h.buf, h.read = h.buf[:copy(h.buf, h.buf[h.read:])], 0
	}
	h.buf = append(h.buf, p...)
	h.changed.Broadcast()
}

func (h *half) refused() error {
	if h.stopped == nil && h.finished {
		return errors.New("the stream is finished")
	}
	return h.stopped
}

// Close finishes the stream after what was written.
func (h *half) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.finished = true
	h.cancel(errors.New("finished"))
	h.changed.Broadcast()
	return nil
}

// CancelWrite breaks the stream off: what was not read yet is lost.
func (h *half) CancelWrite() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken == nil && !h.finished {
		h.broken = errReset
	}
	h.stopped = errReset
	h.cancel(errReset)
	h.changed.Broadcast()
}

// CancelRead tells the writer to stop.
func (h *half) CancelRead() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped, h.buf, h.read = errStopped, nil, 0
	h.cancel(errStopped)
	h.changed.Broadcast()
}

// SetReadDeadline implements ReceiveStream.
func (h *half) SetReadDeadline(t time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
	}
	h.expired = false
	if !t.IsZero() {
		h.timer = h.clock.AfterFunc(t.Sub(h.clock.Now()), h.expire)
	}
	return nil
}

func (h *half) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expired = true
	h.changed.Broadcast()
}

// Context implements SendStream.
func (h *half) Context() context.Context { return h.ctx }

// unread is how many bytes wait for the reader.
func (h *half) unread() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.buf) - h.read
}

// stands reports whether a writer waits for room.
func (h *half) stands() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.writing && len(h.buf)-h.read >= h.window
}

// memStream is one end of a bidirectional stream.
type memStream struct {
	in, out *half
}

func (s memStream) Read(p []byte) (int, error)        { return s.in.Read(p) }
func (s memStream) CancelRead()                       { s.in.CancelRead() }
func (s memStream) SetReadDeadline(t time.Time) error { return s.in.SetReadDeadline(t) }
func (s memStream) Write(p []byte) (int, error)       { return s.out.Write(p) }
func (s memStream) TryWriteAll(p []byte) error        { return s.out.TryWriteAll(p) }
func (s memStream) Close() error                      { return s.out.Close() }
func (s memStream) CancelWrite()                      { s.out.CancelWrite() }
func (s memStream) Context() context.Context          { return s.out.ctx }

// closed is how a connection ended.
type closed struct {
	code   CloseCode
	client bool
}

func (c closed) Error() string { return "connection closed" }

// memConn is a connection in memory: the broker's end implements Conn, the client's end is the other methods.
type memConn struct {
	clock  actors.Clock
	ctx    context.Context
	cancel context.CancelCauseFunc

	bidi      chan Stream
	uni       chan ReceiveStream
	toClient  chan *half
	allowed   chan struct{} // unidirectional streams that the client still allows
	window    int           // of each stream, in each direction
	chunk     int           // of what the broker reads
	unsent    bool          // what the broker tries is never taken, as if what it had tried before had not been sent
	mostTried int           // see half.most
	opened    atomic.Int64
}

var _ Conn = (*memConn)(nil)

const memStreams = 4096 // more than any test opens

func newMemConn(clock actors.Clock) *memConn {
	c := &memConn{clock: clock, bidi: make(chan Stream, memStreams), uni: make(chan ReceiveStream, memStreams),
		toClient: make(chan *half, memStreams), allowed: make(chan struct{}, memStreams), window: 1 << 20, chunk: 1 << 30}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.allow(memStreams)
	return c
}

func (c *memConn) allow(n int) {
	for range n {
		c.allowed <- struct{}{}
	}
}

// AcceptStream implements Conn.
func (c *memConn) AcceptStream(ctx context.Context) (Stream, error) {
	return receive(ctx, c.ctx, c.bidi)
}

// AcceptReceiveStream implements Conn.
func (c *memConn) AcceptReceiveStream(ctx context.Context) (ReceiveStream, error) {
	return receive(ctx, c.ctx, c.uni)
}

// OpenSendStream implements Conn.
func (c *memConn) OpenSendStream(ctx context.Context) (SendStream, error) {
	if _, err := receive(ctx, c.ctx, c.allowed); err != nil {
		return nil, err
	}
	h := newHalf(c.ctx, c.clock, c.window)
	h.unsent, h.most = c.unsent, c.mostTried
	c.toClient <- h
	return h, nil
}

// Close implements Conn.
func (c *memConn) Close(code CloseCode) { c.cancel(closed{code: code}) }

// Context implements Conn.
func (c *memConn) Context() context.Context { return c.ctx }

// RemoteAddr implements Conn.
func (c *memConn) RemoteAddr() string { return "memory" }

// leave is the client going away.
func (c *memConn) leave() { c.cancel(closed{client: true}) }

// stream opens a bidirectional stream and returns the client's end.
func (c *memConn) stream(began func()) memStream {
	c.opened.Add(1)
	up, down := newHalf(c.ctx, c.clock, c.window), newHalf(c.ctx, c.clock, c.window)
	up.chunk, up.began, down.unsent = c.chunk, began, c.unsent
	c.bidi <- memStream{in: up, out: down}
	return memStream{in: down, out: up}
}

// publishOnly opens a unidirectional stream towards the broker.
func (c *memConn) publishOnly() *half {
	up := newHalf(c.ctx, c.clock, c.window)
	up.chunk = c.chunk
	c.uni <- up
	return up
}

func receive[T any](ctx, conn context.Context, ch <-chan T) (v T, err error) {
	if conn.Err() != nil {
		return v, context.Cause(conn)
	}
	select {
	case v = <-ch:
		return v, nil
	case <-ctx.Done():
		return v, context.Cause(ctx)
	case <-conn.Done():
		return v, context.Cause(conn)
	}
}

// memAcceptor hands out connections that a test makes.
type memAcceptor struct {
	conns   chan Conn
	stopped chan struct{}
	once    sync.Once
}

func newMemAcceptor() *memAcceptor {
	return &memAcceptor{conns: make(chan Conn), stopped: make(chan struct{})}
}

// Accept implements Acceptor.
func (a *memAcceptor) Accept(ctx context.Context) (Conn, error) {
	select {
	case c := <-a.conns:
		return c, nil
	case <-a.stopped:
		return nil, errors.New("stopped")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// StopAccepting implements Acceptor.
func (a *memAcceptor) StopAccepting() error {
	a.once.Do(func() { close(a.stopped) })
	return nil
}
