package sessionactor

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

var (
	errPumpPanicked = errors.New("the pump panicked")
	// errUnheard ends an event stream whose client cannot hear that it has it.
	errUnheard = errors.New("the stream it was asked for on is gone")
)

// openTimeout is how long a subscription waits for the client to allow one more unidirectional stream. A client that allows
// none is told, instead of leaving its subscribe without an answer.
const openTimeout = 5 * time.Second

// feed is the loop that fills one event stream, of a subscription or a watch: read up to the readable end, write, else wait for more.
// Catching up and being live are the same code. It runs in one goroutine, which is the only one that writes to the event stream. What is
// written is its source's business.
type feed struct {
	session *session
	id      uint64
	asked   *asked
	source  source
	gauge   prometheus.Gauge   // how many there are of its kind
	lagged  prometheus.Counter // those that were told that they lag; nil when nobody counts them
	eager   bool               // it is noted in slow when the client's window does not take what is written at once

	stream  SendStream
	cursor  storage.Cursor // nil before its place was taken
	next    id.Offset      // where the next page begins
	gate    Gate
	batches []*batch.Batch
	pieces  pieces
	tried   bool // a piece was taken without waiting, which may be because the client's window is large: the transport keeps it until it has left

	busy      bool         // more than one batch was queued when there was something to write last
	busySince time.Time    // when that was
	late      actors.Timer // rings the gate when events have waited for others long enough; nil before the first time
	slow      bool         // see eager; until there is nothing to read
	finishing bool         // the session is draining: end once there is nothing to read
	time      pageTime
}

// source makes of what a feed reads what its client sees.
type source interface {
	// begin takes the place in the log, see feed.place, and returns the answer to the request, which is a refusal or the like when err is
	// not nil.
	begin(ctx context.Context) (answer sessioncore.Answer, err error)
	// first writes what comes before anything from the log. more is false when the event stream is over by that.
	first(ctx context.Context) (more bool, err error)
	// page writes what there is in a page, which may be a hole and nothing behind it.
	page(p storage.Page) error
	// hole says how to go on when records were lost.
	hole() afterHole
	// over says that the event stream has ended.
	over()
	// copies reports whether frames are made of what a page holds, instead of being written as it is.
	copies() bool
	// last is the last message for an end, nil when there is none for this client.
	last(e ending) wire.Message
}

// afterHole is how a feed goes on that lost records.
type afterHole uint8

const (
	// goOn: behind the hole. Its client cannot be told.
	goOn afterHole = iota
	// goBack: to where the hole begins, and read what the log holds.
	goBack
	// lagBehind: nowhere. Its client is told, and comes back.
	lagBehind
)

// place takes a place in the log, instead of the one that it had. The error says why there is none.
func (f *feed) place(start storage.Start, offset id.Offset) error {
	f.release()
	cursor, err := f.asked.shard.Log.Register(storage.CursorOptions{
		Start: start, Offset: offset, Capacity: f.asked.capacity, Owner: f.owner(),
		Ring: f.gate.Ring, // a ring that wait did not look at must not make a later one block: the shard rings
	})
	if err != nil {
		return err
	}
	f.cursor, f.next = cursor, cursor.Start()
	return nil
}

// release lets go of the place in the log.
func (f *feed) release() {
	if f.cursor != nil {
		clear(f.batches)
		f.cursor.Release()
		f.cursor, f.batches = nil, nil
	}
}
