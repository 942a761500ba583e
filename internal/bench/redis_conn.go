package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// redisLine bounds a line of an answer, its line feed included: a status, an error, or the length of what follows.
const redisLine = 16 << 10

// RedisError is what a redis-server answered instead of doing what it was asked.
type RedisError struct{ Text string }

// Error repeats it.
func (e *RedisError) Error() string { return "redis-server: " + e.Text }

// redisConn is one connection to a redis-server. Any number of callers may share it: their requests travel in the order in which they
// were written, without waiting for each other's answers, which come in the same order.
type redisConn struct {
	conn   net.Conn
	unbind func() bool

	mu      sync.Mutex    // of a write and of the place behind it
	request []byte        // reused
	last    chan struct{} // closed when the answer to the request before has been read

	answers *bufio.Reader // of whose turn it is
	failed  error         // likewise; nothing can be read behind it
}

// dialRedis connects. The end of life breaks the connection, also while somebody waits for an answer.
func dialRedis(ctx, life context.Context, addr string, config *tls.Config) (*redisConn, error) {
	conn, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: redisStartTime}, Config: config}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to redis-server: %w", err)
	}
	idle := make(chan struct{})
	close(idle)
	unbind := context.AfterFunc(life, func() { _ = conn.Close() }) // closing what is closed is no mistake
	return &redisConn{conn: conn, unbind: unbind, last: idle, answers: bufio.NewReaderSize(conn, redisLine)}, nil
}

func (c *redisConn) close() error {
	c.unbind()
	if err := c.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close connection to redis-server: %w", err)
	}
	return nil
}

// do makes one request and waits for its answer. value is the start of room, which is the caller's and bounds what is taken; found is
// false for a key that is not there.
func (c *redisConn) do(room []byte, args ...[]byte) (value []byte, found bool, err error) {
	c.mu.Lock()
	c.request = appendCommand(c.request[:0], args)
	_, err = c.conn.Write(c.request)
	before, mine := c.last, make(chan struct{})
	c.last = mine
	c.mu.Unlock()
	<-before
	defer close(mine)
	if err == nil {
		err = c.failed
	}
	if err == nil {
		value, found, err = readReply(c.answers, room)
	}
	var no *RedisError
	if err != nil && !errors.As(err, &no) {
		c.failed = err
		_ = c.conn.Close() // or those behind it waited for answers that nobody can tell apart
	}
	return value, found, err
}

// appendCommand writes a request as the protocol has it: an array of strings, each with its length before it.
// https://redis.io/docs/latest/develop/reference/protocol-spec
func appendCommand(dst []byte, args [][]byte) []byte {
	dst = appendLength(dst, '*', len(args))
	for _, a := range args {
		dst = appendLength(dst, '$', len(a))
		dst = append(dst, a...)
		dst = append(dst, "\r\n"...)
	}
	return dst
}

func appendLength(dst []byte, kind byte, n int) []byte {
	dst = strconv.AppendInt(append(dst, kind), int64(n), 10)
	return append(dst, "\r\n"...)
}

// readReply reads a status, an error, or a string that fits room.
func readReply(r *bufio.Reader, room []byte) (value []byte, found bool, err error) {
	line, err := r.ReadSlice('\n')
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("read answer of redis-server: %w", err)
	case len(line) < 3 || line[len(line)-2] != '\r':
		return nil, false, fmt.Errorf("read answer of redis-server: %q is no line of its protocol", line)
	}
	kind, text := line[0], string(line[1:len(line)-2])
	switch kind {
	case '+':
		return append(room[:0], text...), true, nil
	case '-':
		return nil, false, &RedisError{Text: text}
	case '$':
		return readBulk(r, text, room)
	}
	return nil, false, fmt.Errorf("read answer of redis-server: %q was not asked for", line)
}

func readBulk(r *bufio.Reader, length string, room []byte) (value []byte, found bool, err error) {
	n, err := strconv.Atoi(length)
	switch {
	case err != nil || n < -1:
		return nil, false, fmt.Errorf("read answer of redis-server: %q is no length", length)
	case n == -1:
		return nil, false, nil
	case n > cap(room):
		return nil, false, fmt.Errorf("read answer of redis-server: %d bytes where at most %d were expected", n, cap(room))
	}
	if _, err := io.ReadFull(r, room[:n]); err != nil {
		return nil, false, fmt.Errorf("read answer of redis-server: %w", err)
	}
	var end [2]byte
	if _, err := io.ReadFull(r, end[:]); err != nil || end != [2]byte{'\r', '\n'} {
		return nil, false, fmt.Errorf("read answer of redis-server: no end behind %d bytes: %w", n, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return room[:n], true, nil
}
