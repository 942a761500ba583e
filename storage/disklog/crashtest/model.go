package crashtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/wire/id"
)

// model is what may be on the disk.
type model struct {
	base     id.Offset      // where the history begins; batches follow each other from there
	batches  []*batch.Batch // claimed, in order
	acked    id.Offset      // everything before it is acknowledged as durable
	floor    id.Offset      // retention may have removed what ends at or before it
	removed  id.Offset      // retention has removed what is before it
	reset    *id.Offset     // a reset to this is under way
	ackedGen id.Generation
	generous id.Generation // asked to be saved, at least ackedGen
	log      id.LogID      // zero: not reported yet
	kept     *id.Offset    // a streamed snapshot was acknowledged that is as of this
}

func (m *model) end() id.Offset {
	if n := len(m.batches); n > 0 {
		return m.batches[n-1].End()
	}
	return m.base
}

// next makes the batch that follows.
func (m *model) next(rng *rand.Rand, generation id.Generation) *batch.Batch {
	b := &batch.Batch{
		Base: m.end(), Count: uint32(1 + rng.IntN(4)), Generation: generation, Kind: batch.Records, AppendMicros: 1_000_000 * (uint64(m.end()) + 1),
	}
	if rng.IntN(4) == 0 {
		b.ProducerID, b.Sequence, b.Publisher = 5, uint64(b.Base), "alice"
	}
	size := rng.IntN(90)
	if rng.IntN(12) == 0 {
		size = rng.IntN(3000)
	}
	for range b.Count {
		payload := bytes.Repeat([]byte{byte(rng.Uint32())}, size)
		b.Body = binary.BigEndian.AppendUint32(b.Body, uint32(size))
		b.Body = append(b.Body, payload...)
	}
	b.PayloadBytes = int(b.Count) * size
	return b
}

// check compares an open log with the model.
func (m *model) check(l *disklog.Log) error {
	base, _, tail := l.Bounds()
	if g := l.Generation(); g < m.ackedGen || g > m.generous {
		return fmt.Errorf("generation %d, saved were %d to %d", g, m.ackedGen, m.generous)
	}
	if m.reset != nil && base == *m.reset && tail == base {
		return nil
	}
	switch {
	case tail < m.acked:
		return fmt.Errorf("the log ends at %d, acknowledged is up to %d", tail, m.acked)
	case tail > m.end():
		return fmt.Errorf("the log ends at %d, appended was up to %d", tail, m.end())
	case base < m.removed || base > max(m.floor, m.removed):
		return fmt.Errorf("the log begins at %d, not in %d to %d", base, m.removed, m.floor)
	}
	return m.compare(l, base, tail)
}

func (m *model) compare(l *disklog.Log, from, tail id.Offset) error {
	for _, want := range m.batches {
		if want.Base < from {
			continue
		}
		if from == tail {
			return nil
		}
		page, err := l.Read(context.Background(), from, tail, 1, 1, nil)
		if err != nil {
			return fmt.Errorf("read %d of %d: %w", from, tail, err)
		}
		if len(page) != 1 {
			return fmt.Errorf("read %d of %d: %d batches", from, tail, len(page))
		}
		if err := equal(page[0], want); err != nil {
			return err
		}
		from = want.End()
	}
	if from != tail {
		return fmt.Errorf("the log ends at %d, batches at %d", tail, from)
	}
	return nil
}

func equal(have, want *batch.Batch) error {
	if have.Base != want.Base || have.Count != want.Count || have.Generation != want.Generation || have.AppendMicros != want.AppendMicros ||
		have.ProducerID != want.ProducerID || have.Sequence != want.Sequence || have.Publisher != want.Publisher ||
		have.PayloadBytes != want.PayloadBytes || !bytes.Equal(have.Body, want.Body) {
		return fmt.Errorf("the batch at %d (%d records, generation %d) is another one: %d records, generation %d at %d",
			want.Base, want.Count, want.Generation, have.Count, have.Generation, have.Base)
	}
	return nil
}

// told is what a streamed snapshot says as of an offset: it tells apart all that may ever lie before it.
func (m *model) told(asOf id.Offset) []byte {
	var b []byte
	for _, x := range m.batches {
		if x.End() <= asOf {
			b = fmt.Appendf(b, "%d+%d g%d %x\n", x.Base, x.Count, x.Generation, batch.Checksum(x.Body))
		}
	}
	return append(b, bytes.Repeat([]byte("entry"), 200)...)
}

// checkStream looks at the streamed snapshot of a log that was opened: it tells of what is there, and is no older than one that was acknowledged.
func (m *model) checkStream(l *disklog.Log) error {
	base, _, tail := l.Bounds()
	done := m.reset != nil && base == *m.reset && tail == base
	asOf, r, ok := l.OpenSnapshot(streamName)
	if !ok {
		if m.kept != nil && *m.kept >= base && !done {
			return fmt.Errorf("the streamed snapshot as of %d is not there", *m.kept)
		}
		return nil
	}
	body, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("streamed snapshot: %w", err)
	}
	switch {
	case done:
		return fmt.Errorf("a streamed snapshot as of %d outlived a reset", asOf)
	case m.kept != nil && asOf < *m.kept:
		return fmt.Errorf("the streamed snapshot is as of %d, one as of %d was kept", asOf, *m.kept)
	case !bytes.Equal(body, m.told(asOf)):
		return fmt.Errorf("the streamed snapshot as of %d tells of other batches", asOf)
	}
	return nil
}

// restartAt makes the log an empty one that begins at an offset.
func (m *model) restartAt(to id.Offset) {
	m.batches, m.base, m.acked, m.floor, m.removed, m.reset, m.kept = nil, to, to, to, to, nil, nil
}

// adopt takes over what a recovered log has, of what was not acknowledged.
func (m *model) adopt(l *disklog.Log) {
	base, _, tail := l.Bounds()
	m.generous = max(m.generous, l.Generation())
	m.ackedGen = l.Generation()
	if m.reset != nil && base == *m.reset && tail == base {
		m.restartAt(base)
		return
	}
	m.reset = nil
	for n := len(m.batches); n > 0 && m.batches[n-1].End() > tail; n-- {
		m.batches = m.batches[: n-1 : n-1]
	}
	m.removed, m.acked = base, tail
	m.floor = max(m.floor, base)
}
