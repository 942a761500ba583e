package sessionactor

import (
	"errors"
	"sync"
	"time"
)

// writeBuffers are shared by all subscriptions: only one that has something to write holds one.
var writeBuffers = sync.Pool{New: func() any { b := make([]byte, 0, writeBytes); return &b }}

// join puts bytes behind those that wait in buf. What is large goes out by itself, uncopied.
func (f *feed) join(buf, frame []byte) ([]byte, error) {
	if len(buf)+len(frame) <= writeBytes {
		return append(buf, frame...), nil
	}
	if err := f.put(buf); err != nil {
		return buf, err
	}
	if len(frame) < writeBytes/4 {
		return append(buf[:0], frame...), nil
	}
	return buf[:0], f.put(frame)
}

// restart writes what was encoded and keeps the buffer only if it is of the usual size.
func (f *feed) restart(buf []byte) ([]byte, error) {
	err := f.put(buf)
	if cap(buf) > 2*writeBytes {
		return make([]byte, 0, writeBytes), err
	}
	return buf[:0], err
}

func (f *feed) put(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if f.pieces.on {
		return f.putPieces(p)
	}
	return f.send(p)
}

// transmit writes to the event stream, and waits until the client takes it.
func (f *feed) transmit(b []byte) error {
	if f.eager {
		err := f.stream.TryWriteAll(b)
		if !errors.Is(err, ErrWouldBlock) {
			return err
		}
		f.refused(err)
	}
	_, err := f.push(b)
	return err
}

// push writes, and waits until the client takes it: of an eager feed piece by piece, and one byte before each. When that has been written all that
// was taken before has left, and the rest of the piece is refused only if the client's window has no room for it, which is what is looked for.
func (f *feed) push(b []byte) (wrote int, err error) {
	for f.eager && !f.slow && len(b) > 1 {
		piece := b[:min(len(b), pieceBytes)]
		n, err := f.await(piece[:1])
		wrote, f.tried, b = wrote+n, false, b[n:]
		if err != nil {
			return wrote, err
		}
		if err := f.stream.TryWriteAll(piece[1:]); errors.Is(err, ErrWouldBlock) {
			f.refused(err)
			break
		} else if err != nil {
			return wrote, err
		}
		wrote, f.tried, b = wrote+len(piece)-1, true, b[len(piece)-1:]
	}
	if len(b) > 0 {
		n, err := f.await(b)
		f.tried = false // it waits for what was taken before
		return wrote + n, err
	}
	return wrote, nil
}

// slowWrite is how long a write may wait of a client that is not slow.
const slowWrite = 5 * time.Second

// await writes, and waits until the client takes it. Whatever it was that kept it from being tried: a client for which it waits long is slow.
func (f *feed) await(b []byte) (int, error) {
	if !f.eager {
		return f.stream.Write(b)
	}
	began := f.session.opts.Clock.Now()
	n, err := f.stream.Write(b)
	f.slow = f.slow || f.session.opts.Clock.Now().Sub(began) > slowWrite
	return n, err
}

// refused is told of a write that was tried in vain. That a client is slow is said by its window; that what was taken before has not been sent
// yet comes of a large window, and of how much there is to write.
func (f *feed) refused(err error) {
	if f.eager && !errors.Is(err, ErrUnsent) {
		f.slow = true
	}
}
