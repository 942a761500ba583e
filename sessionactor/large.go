package sessionactor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// LargePages is a node's budget for what event streams keep in hand that is larger than usual, until their clients have taken it: records and values
// that were read from disk for one reader, and frames that are made for one. Up to 64 KiB each are not counted. Safe for concurrent use; the
// decisions are sessioncore's.
type LargePages struct {
	mu   sync.Mutex
	core *sessioncore.Large
}

// NewLargePages returns a budget of which nothing is used.
func NewLargePages(l sessioncore.LargeLimits) *LargePages {
	return &LargePages{core: sessioncore.NewLarge(l)}
}

// Used is what is kept now, in bytes; Limit what may be.
func (l *LargePages) Used() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.core.Used()
}

// Limit is documented at Used.
func (l *LargePages) Limit() int { return l.core.Limits().Node }

func (l *LargePages) take(c *sessioncore.LargeConn, bytes int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.core.Take(c, bytes)
}

func (l *LargePages) give(c *sessioncore.LargeConn, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.core.Give(c, bytes)
}

const (
	// frameCopies is how much a frame takes while it is made, in its content: base64 is four thirds, in a buffer that doubles.
	frameCopies = 3
	// pieceBytes is what a feed holds of a large page that it may not keep, while its client does not take it. For each piece the page is read again.
	pieceBytes = 128 << 10
)

// errAside has whoever writes a page let go of it: its next piece is noted, and waits for the client.
var errAside = errors.New("the page is put aside until its client takes more")

// pieces is how a feed writes a large page that it may not keep.
type pieces struct {
	sessioncore.Pieces
	on    bool
	kept  bool   // there is room for the page by now: the rest of it is written at once
	piece []byte // that waits; its own memory
}

// putPieces is put of a page in pieces.
func (f *feed) putPieces(p []byte) error {
	x := &f.pieces
	p = x.Rest(p)
	if x.kept && len(p) > 0 {
		x.Gave(len(p))
		return f.send(p)
	}
	for len(p) > 0 {
		n, err := min(len(p), pieceBytes), ErrUnsent
		if !f.tried {
			err = f.stream.TryWriteAll(p[:n])
		}
		if errors.Is(err, ErrWouldBlock) {
			f.refused(err)
			x.piece = append(x.piece[:0], p[:n]...)
			return errAside
		}
		if err != nil {
			return err
		}
		f.tried = true
		x.Gave(n)
		p = p[n:]
	}
	return nil
}

// takePiece waits until the client has taken the piece.
func (f *feed) takePiece() error {
	x := &f.pieces
	began, t := f.session.opts.Timings.Now(), &f.time
	n, err := f.push(x.piece)
	x.Took(n)
	if t.on {
		t.transport += f.session.opts.Timings.Since(began)
	}
	if err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// once reports whether what follows was not done by an earlier attempt at the page: for what is counted.
func (f *feed) once() bool { return f.pieces.Once() }

// keep reports whether a page of so many bytes may be kept, until letGo.
func (f *feed) keep(hand int) bool { return f.session.opts.Large.take(&f.session.large, hand) }

func (f *feed) letGo(hand int) {
	if hand > 0 {
		f.session.opts.Large.give(&f.session.large, hand)
	}
}

// passOn writes a page.
func (f *feed) passOn(ctx context.Context, page storage.Page) error {
	hand := f.handSize(&page)
	if hand == 0 || f.keep(hand) {
		defer f.letGo(hand)
		return f.source.page(page)
	}
	from, end, behind := page.From, page.Next, f.cursor.Behind()
	f.session.opts.Metrics.PutAside.Inc()
	f.pieces = pieces{on: true}
	defer func() { f.pieces = pieces{} }()
	for {
		f.pieces.Again()
		err := f.source.page(page)
		if !errors.Is(err, errAside) {
			return err
		}
		if behind { // a page of the tail is shared, and might not be there again
			clear(f.batches)
			page.Batches = nil
			f.cursor.LetGo()
		}
		if err := f.takePiece(); err != nil {
			return err
		}
		if f.pieces.kept = f.keep(hand); f.pieces.kept {
			defer f.letGo(hand) // it is the last attempt
		}
		if behind {
			if page.Batches, err = f.readAgain(ctx, from, end); err != nil {
				return f.breakOff(ctx, err)
			}
		}
	}
}

// breakOff ends an event stream in the middle of a frame, where nothing can be told.
func (f *feed) breakOff(ctx context.Context, err error) error {
	var closed *storage.ClosedError
	var old *storage.TooOldError
	if ctx.Err() == nil && !errors.As(err, &closed) && !errors.As(err, &old) {
		f.session.readFailed(f.asked.entry, f.asked.number, err)
	}
	f.stream.CancelWrite()
	return fmt.Errorf("read events: %w", err)
}

// readAgain reads the one batch of a large page from disk.
func (f *feed) readAgain(ctx context.Context, from, end id.Offset) ([]*batch.Batch, error) {
	got, err := f.asked.shard.History.Read(ctx, from, end, 1, 1, f.batches)
	if err != nil {
		return nil, err
	}
	if len(got) != 1 || got[0].Base > from || got[0].End() != end {
		return nil, fmt.Errorf("read log: what was stored from offset %d up to %d is not there as it was", from, end)
	}
	got[0] = got[0].From(from)
	f.batches = got
	return got, nil
}

// handSize is what a page takes in memory for this feed alone, in bytes, 0 if that is no more than usual: what was read from disk, and the frames
// that are made of it. A page that large is one batch.
func (f *feed) handSize(p *storage.Page) int {
	if len(p.Batches) != 1 { // several of them are no more than usual, in what they hold; with what is allowed for each they may be counted as more
		return 0
	}
	size := p.Batches[0].Size()
	if size <= pageBytes {
		return 0
	}
	hand := 0
	if f.cursor.Behind() {
		hand = size
	}
	if f.source.copies() {
		hand += frameCopies * size
	}
	return hand
}
