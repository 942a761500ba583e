package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/felixd/felixd/actors"
)

// Bounds of the fault door. It serves an operator and a test, not a load.
const (
	faultLineMax  = 4 << 10          // bytes of a request with its newline: the longest path of an actor fits several times
	faultConnsMax = 4                // connections at a time: a person, a script, and room for what hangs
	faultIdle     = time.Minute      // longest wait for the next request, so that what hangs gives its place back
	faultWrite    = 10 * time.Second // longest wait for a client to take an answer
	faultLast     = time.Second      // the same once the door closes: what was done is told, but nobody holds up an end
)

// faultDoor lets whoever may write to its socket crash, pause and slow actors. A connection carries requests and answers in turn, one
// JSON object a line each.
type faultDoor struct {
	faults   actors.Faults
	logger   *slog.Logger
	listener net.Listener
	remove   func() // takes the socket out of the data directory

	wg    sync.WaitGroup // accept loop and connections
	once  sync.Once
	slots chan struct{}

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// openFaultDoor serves l until close. It takes over l.
func openFaultDoor(ctx context.Context, l net.Listener, remove func(), faults actors.Faults, logger *slog.Logger) *faultDoor {
	d := &faultDoor{faults: faults, logger: logger, listener: l, remove: remove, slots: make(chan struct{}, faultConnsMax)}
	d.wg.Go(func() { d.accept(ctx) })
	return d
}

// accept takes connections until the listener is closed.
func (d *faultDoor) accept(ctx context.Context) {
	for {
		conn, err := d.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			d.logger.Error("fault door: accept", "error", err)
			pause(ctx, time.Second) // out of file descriptors: others give some back
		case !d.admit(conn):
			d.turnAway(conn)
		default:
			d.wg.Go(func() { d.serve(conn) })
		}
	}
}

// admit takes a place for conn; false when there is none, or the door is closed.
func (d *faultDoor) admit(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	select {
	case d.slots <- struct{}{}:
		d.conns = append(d.conns, conn)
		return true
	default:
		return false
	}
}

// turnAway says why and closes. The line fits the socket's buffer, so that it waits for nobody.
func (d *faultDoor) turnAway(conn net.Conn) {
	d.answer(conn, faultError{Code: "busy", Message: "all connections of the fault door are taken; close one"})
	_ = conn.Close()
}

// serve answers one connection's requests until it ends, is idle too long, or breaks the bound of a line.
func (d *faultDoor) serve(conn net.Conn) {
	defer d.leave(conn)
	lines := bufio.NewReaderSize(conn, faultLineMax)
	for {
		if !d.awaitNext(conn) {
			return
		}
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			d.answer(conn, faultError{Code: "too_long", Message: "a request is one line of at most 4096 bytes"})
			return
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0):
			return
		}
		if !d.answer(conn, performFault(d.faults, line)) || err != nil {
			return
		}
	}
}

// awaitNext gives the next request its time; false when there is to be none. It and close exclude each other, so that no deadline given
// here outlasts the one that ends the reading.
func (d *faultDoor) awaitNext(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.closed && conn.SetReadDeadline(time.Now().Add(faultIdle)) == nil
}

// answer writes one line; false when nobody takes it. It is written also when the door closes meanwhile: what was done is told, and a
// crash can be what closes the door.
func (d *faultDoor) answer(conn net.Conn, what any) bool {
	if d.awaitTaker(conn) != nil {
		return false
	}
	_, err := conn.Write(faultLine(what))
	return err == nil
}

// awaitTaker gives the next answer its time.
func (d *faultDoor) awaitTaker(conn net.Conn) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	most := faultWrite
	if d.closed {
		most = faultLast
	}
	return conn.SetWriteDeadline(time.Now().Add(most))
}

// leave closes conn and gives its place back.
func (d *faultDoor) leave(conn net.Conn) {
	_ = conn.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, c := range d.conns {
		if c == conn {
			d.conns = append(d.conns[:i], d.conns[i+1:]...)
			break
		}
	}
	<-d.slots
}

// end closes the door and heals what was done through it, so that nobody waits for a paused actor. On a nil door it does nothing.
func (d *faultDoor) end() {
	if d == nil {
		return
	}
	d.close()
	if n := d.faults.HealAll(); n > 0 {
		d.logger.Warn("fault door: actors that were paused or slowed are healed", "actors", n)
	}
}

// close takes the socket away and ends all connections: at once where nothing is asked, else behind the answer, which has faultLast to be
// taken. It returns when the door's goroutines have ended.
func (d *faultDoor) close() {
	d.once.Do(func() {
		_ = d.listener.Close()
		d.mu.Lock()
		d.closed = true
		for _, conn := range d.conns {
			_ = conn.SetReadDeadline(time.Unix(0, 0)) // nothing more is heard
			_ = conn.SetWriteDeadline(time.Now().Add(faultLast))
		}
		d.mu.Unlock()
		d.remove()
	})
	d.wg.Wait()
}
