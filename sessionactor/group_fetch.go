package sessionactor

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// groupFetch reads records for a poll.
type groupFetch struct {
	poll    *heldPoll
	offsets []id.Offset
	done    func(shardactor.GroupRead)
	ended   bool
}

// end tells the group, once.
func (f *groupFetch) end(r shardactor.GroupRead) {
	if !f.ended {
		f.ended = true
		f.done(r)
	}
}

// Fetch implements shardactor.GroupReply. The goroutine for reads performs it.
func (l *lane) Fetch(t shardcore.Token, offsets []id.Offset, done func(shardactor.GroupRead)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.polls.find(sessioncore.Token(t))
	if p == nil || l.core.Gone() { // nobody takes them: they are owed again at once
		f := streamGone()
		done(shardactor.GroupRead{Failure: &f})
		return
	}
	l.dropRecords(p)
	l.readLater(logRead{token: p.token, log: p.log.History, fetch: &groupFetch{poll: p, offsets: offsets, done: done}})
}

// readFetch reads what a poll is to get.
func (l *lane) readFetch(ctx context.Context, f *groupFetch) (*groupPage, error) {
	page := &groupPage{payload: rangePayload, encoded: rangeEncoded}
	err := page.read(ctx, f.poll.log.History, f.offsets)
	return page, err
}

// endFetch gives the poll what was read for it, and tells the group. It reports whether the poll keeps the places for reads, with its records.
func (l *lane) endFetch(f *groupFetch, page *groupPage, err error) (kept bool) {
	var long *recordTooLongError
	if errors.As(err, &long) {
		f.end(shardactor.GroupRead{Found: page.found, Unfit: true})
		return false
	}
	if refusal := l.unfetched(f.poll.log, err); refusal != nil {
		f.end(shardactor.GroupRead{Failure: refusal})
		return false
	}
	if len(page.records) > 0 {
		if kept = l.keepRecords(f.poll, page.records); !kept {
			gone := streamGone()
			f.end(shardactor.GroupRead{Failure: &gone})
			return false
		}
	}
	f.end(shardactor.GroupRead{Found: page.found})
	return kept
}

// unfetched says why nothing could be read, nil if it could.
func (l *lane) unfetched(h logOf, err error) *wire.Refusal {
	a := l.unread(h, err)
	if a != nil && a.Refusal == nil { // retention was faster than the group was told
		f := notReady()
		return &f
	}
	if a == nil {
		return nil
	}
	return a.Refusal
}

// keepRecords gives a poll what was read for it, with the places; false means that nobody takes it any more.
func (l *lane) keepRecords(p *heldPoll, records []wire.GroupRecord) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.polls.find(p.token) != p || l.core.Gone() {
		return false
	}
	p.records, p.places = records, true
	return true
}

// groupPage is what is read for a poll. payload and encoded are what there is room for, as in rangePage.
type groupPage struct {
	records []wire.GroupRecord
	found   []bool
	payload int
	encoded int
	batches []*batch.Batch
}

// read reads the records at some offsets, in that order, until there is no more room. What is not there, or not for clients, is not found.
// What was read before an error is good.
func (p *groupPage) read(ctx context.Context, log storage.History, offsets []id.Offset) error {
	for i := 0; i < len(offsets); {
		o := offsets[i]
		b := p.at(o)
		if b == nil {
			err := p.load(ctx, log, offsets[i:])
			var old *storage.TooOldError
			if errors.As(err, &old) && o < old.Oldest {
				for ; i < len(offsets) && offsets[i] < old.Oldest; i++ {
					p.found = append(p.found, false)
				}
				continue
			}
			if err == nil && p.at(o) == nil {
				_, end := log.Bounds()
				err = fmt.Errorf("read for a group: offset %d is not there, and the log ends at %d", o, end)
			}
			if err != nil && len(p.records) > 0 {
				return nil
			}
			if err != nil {
				return err
			}
			continue
		}
		n, err := p.take(b, offsets[i:])
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		i += n
	}
	return nil
}

// at is the batch that holds an offset, among those that were read; what lies before it is let go of.
func (p *groupPage) at(o id.Offset) *batch.Batch {
	for i, b := range p.batches {
		if o >= b.Base && o < b.End() {
			p.batches = p.batches[i:]
			return b
		}
	}
	return nil
}

// load reads the batches from the first of some offsets on, as far as they follow each other.
func (p *groupPage) load(ctx context.Context, log storage.History, offsets []id.Offset) (err error) {
	run := 1
	for run < min(len(offsets), rangeBatches) && offsets[run] == offsets[run-1]+1 {
		run++
	}
	_, end := log.Bounds() // to the end: a batch that reaches past what is asked for is not returned
	p.batches, err = log.Read(ctx, offsets[0], end, run, max(1, p.payload), nil)
	return err
}

// take takes what one batch holds of some offsets, of which it holds the first. It returns for how many of them there was room.
func (p *groupPage) take(b *batch.Batch, offsets []id.Offset) (n int, err error) {
	if !b.Kind.Visible() {
		for n < len(offsets) && offsets[n] >= b.Base && offsets[n] < b.End() {
			p.found = append(p.found, false)
			n++
		}
		return n, nil
	}
	o := b.Base
	for payload, rest, ok := wire.Region(b.Region()).Next(); ok && n < len(offsets); payload, rest, ok = rest.Next() {
		if o == offsets[n] {
			fits, err := p.record(o, payload, b.AppendMicros)
			if !fits || err != nil {
				return n, err
			}
			n++
		}
		o++
	}
	if n == 0 {
		return 0, fmt.Errorf("read for a group: the batch at offset %d has no record for offset %d", b.Base, offsets[0])
	}
	return n, nil
}

// record adds a record, if there is room for it; there always is for the first, unless no answer can hold it.
func (p *groupPage) record(o id.Offset, payload []byte, micros uint64) (fits bool, err error) {
	encoded := base64.StdEncoding.EncodedLen(len(payload)) + recordEncoded
	if first := len(p.records) == 0; first && encoded > rangeEncoded {
		return false, &recordTooLongError{offset: o, bytes: len(payload)}
	} else if !first && (len(payload) > p.payload || encoded > p.encoded) {
		return false, nil
	}
	p.records = append(p.records, wire.GroupRecord{Offset: o, Payload: payload, TimestampMicros: wire.Some(micros)})
	p.found = append(p.found, true)
	p.payload, p.encoded = max(0, p.payload-len(payload)), p.encoded-encoded
	return true, nil
}
