package keyed

import (
	"fmt"
	"io"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// Source is the log that a snapshot is loaded for.
type Source struct {
	// Base and Tail are the log's bounds.
	Base, Tail id.Offset
	// Batch returns the batch that is stored at an offset between them, as a whole.
	Batch func(at id.Offset) (*batch.Batch, error)
}

// Load reads a snapshot into a new index and returns its fold, which stands at an offset from Base to Tail: the log is to be folded on from
// there, and the index served once the fold is Complete.
//
// Errors are *SnapshotError: it is damaged, of another version, of records that this log does not have or has no more, or of a log whose
// last batch was another one; an error of r or of Source.Batch is wrapped in one too. Then nothing is kept or booked, and the log is to be
// folded from its base.
func Load(r io.Reader, o Options, decode Decoder, log Source) (*Fold, error) {
	l := &loading{r: r, log: log, index: NewIndex(o)}
	until, err := l.all()
	if err != nil {
		l.index.Close()
		return nil, err
	}
	l.index.asOf = l.from
	f := &Fold{index: l.index, decode: decode, until: until}
	f.old = f.lookup
	return f, nil
}

// loading is one call of Load. Nobody else knows its index.
type loading struct {
	r       io.Reader
	log     Source
	index   *Index
	buf     []byte
	sum     uint32
	from    id.Offset
	highest id.Offset // of the offsets of all entries
}

func unusable(format string, args ...any) error {
	return &SnapshotError{What: fmt.Sprintf(format, args...)}
}

func (l *loading) all() (until id.Offset, err error) {
	kind, content, err := l.part()
	if err != nil {
		return 0, err
	}
	if err := l.head(kind, content); err != nil {
		return 0, err
	}
	for {
		if kind, content, err = l.part(); err != nil {
			return 0, err
		}
		switch kind {
		case partEntries:
			if err := l.entries(content); err != nil {
				return 0, err
			}
		case partTail:
			if until, err = l.tail(content); err != nil {
				return 0, err
			}
			if n, _ := io.ReadFull(l.r, l.buf[:1]); n != 0 {
				return 0, unusable("bytes follow its end")
			}
			return until, nil
		default:
			return 0, unusable("a part of unknown kind %d", kind)
		}
	}
}

// part reads one part and checks it. Its content is good until the next call.
func (l *loading) part() (kind byte, content []byte, err error) {
	var head [partHeader]byte
	if _, err := io.ReadFull(l.r, head[:]); err != nil {
		return 0, nil, &SnapshotError{What: "read the header of a part", Err: err}
	}
	n := be.Uint32(head[1:])
	if n > partMax {
		return 0, nil, unusable("a part of %d bytes, at most %d are written", n, partMax)
	}
	if int(n) > len(l.buf) {
		l.buf = make([]byte, max(int(n), headBytes+tailBytes))
	}
	content = l.buf[:n]
	if _, err := io.ReadFull(l.r, content); err != nil {
		return 0, nil, &SnapshotError{What: fmt.Sprintf("read a part of %d bytes", n), Err: err}
	}
	l.sum = extend(extend(l.sum, head[:5]), content)
	if want := be.Uint32(head[5:]); want != l.sum {
		return 0, nil, unusable("checksum %#08x of a part, %#08x found", want, l.sum)
	}
	return head[0], content, nil
}

func (l *loading) head(kind byte, b []byte) error {
	if kind != partHead || len(b) != headBytes || be.Uint32(b) != snapshotMagic {
		return unusable("it does not begin with its head")
	}
	if v := be.Uint16(b[4:]); v != snapshotVersion || be.Uint16(b[6:]) != 0 {
		return unusable("version %d, %d is known", v, snapshotVersion)
	}
	l.from = id.Offset(be.Uint64(b[8:]))
	if l.from < l.log.Base || l.from > l.log.Tail {
		return unusable("it is of offset %s, and the log is %s to %s", l.from, l.log.Base, l.log.Tail)
	}
	return nil
}

func (l *loading) entries(b []byte) error {
	x := l.index
	for len(b) > 0 {
		e, rest, err := l.entry(b)
		if err != nil {
			return err
		}
		b = rest
		tag := x.hash.tag(e.Key)
		if _, _, r := x.find(tag, e.Key); r != 0 {
			return unusable("a key is there twice")
		}
		if e.Offset > l.highest {
			l.highest = e.Offset
		}
		x.put(tag, e)
	}
	x.book()
	return nil
}

// entry reads one entry off b.
func (l *loading) entry(b []byte) (e Entry, rest []byte, err error) {
	if len(b) < entryHeader {
		return e, nil, unusable("an entry of %d bytes", len(b))
	}
	key, value := uint64(be.Uint32(b)), uint64(be.Uint32(b[4:])&^coldBit)
	cold := be.Uint32(b[4:])&coldBit != 0
	e = Entry{
		ValueBytes: int(value), Version: id.Offset(be.Uint64(b[8:])), Offset: id.Offset(be.Uint64(b[16:])),
		ExpiresAtMillis: be.Uint64(b[24:]), LogBytes: int(be.Uint32(b[32:])),
	}
	b = b[entryHeader:]
	inline := value
	if cold {
		inline = 0
	}
	if key > KeyMax || value > ValueMax || key+inline > uint64(len(b)) || cold && value == 0 {
		return e, nil, unusable("an entry with a key of %d bytes and a value of %d, %d bytes are left", key, value, len(b))
	}
	if e.Version > e.Offset || e.Offset < l.log.Base || e.Offset >= l.log.Tail {
		return e, nil, unusable("an entry of version %s at offset %s, and the log is %s to %s", e.Version, e.Offset, l.log.Base, l.log.Tail)
	}
	e.Key, e.Value = b[:key:key], b[key:key+inline:key+inline]
	return e, b[key+inline:], nil
}

func (l *loading) tail(b []byte) (until id.Offset, err error) {
	if len(b) != tailBytes {
		return 0, unusable("its tail has %d bytes", len(b))
	}
	until = id.Offset(be.Uint64(b))
	last := Last{Base: id.Offset(be.Uint64(b[16:])), Count: be.Uint32(b[24:]), Generation: id.Generation(be.Uint64(b[28:])), Sum: be.Uint32(b[36:]), Summed: b[40] == 1}
	if until < l.from || until > l.log.Tail {
		return 0, unusable("it ends at offset %s, begins at %s, and the log is %s to %s", until, l.from, l.log.Base, l.log.Tail)
	}
	if n := be.Uint64(b[8:]); n != uint64(l.index.table.count) {
		return 0, unusable("%d entries, %d found", n, l.index.table.count)
	}
	if l.index.table.count > 0 && l.highest >= until {
		return 0, unusable("an entry at offset %s, and it ends at %s", l.highest, until)
	}
	if err := l.check(last, until); err != nil {
		return 0, err
	}
	return until, l.begins()
}

// begins looks whether a batch of the log begins where it is to be folded on: in the midst of one that is not possible.
func (l *loading) begins() error {
	if l.from == l.log.Base || l.from == l.log.Tail {
		return nil
	}
	stored, err := l.log.Batch(l.from)
	if err != nil {
		return &SnapshotError{What: "read the batch at its offset from the log", Err: err}
	}
	if stored.Base != l.from {
		return unusable("it is of offset %s, and the log's batch there begins at %s", l.from, stored.Base)
	}
	return nil
}

// check holds the last batch of the snapshot against the one in the log: a log that was cut and filled again as far as before has others.
func (l *loading) check(last Last, until id.Offset) error {
	if last.Count == 0 { // nothing was folded: there was nothing but the log's base
		if l.index.table.count > 0 || until != l.from {
			return unusable("entries, and no last batch")
		}
		return nil
	}
	if last.Base.Add(uint64(last.Count)) != until || last.Base > until {
		return unusable("its last batch does not end where it does")
	}
	if last.Base >= l.log.Base { // else retention took it, and what follows in the log was appended after it
		stored, err := l.log.Batch(last.Base)
		if err != nil {
			return &SnapshotError{What: "read its last batch from the log", Err: err}
		}
		if !last.Agrees(stored) {
			return unusable("the log's batch at offset %s is another one", last.Base)
		}
	}
	l.index.last = last
	return nil
}
