package segment

import (
	"errors"
	"fmt"

	"github.com/felixd/felixd/wire/id"
)

// chain goes through the segments, oldest first, and takes them one by one into the plan: each must be whole and begin where its
// predecessor ended. The newest is judged by the rules of the tail.
func (p *planner) chain() error {
	for i, s := range p.segments {
		newest := i == len(p.segments)-1
		err := p.follows(i)
		if err == nil && newest {
			err = p.newest(s)
		} else if err == nil {
			err = p.sealed(s)
		}
		if err != nil {
			stop, err := p.cutAt(err, i)
			if err != nil || stop {
				return err
			}
		}
	}
	return p.finish()
}

// finish tells the log's bounds.
func (p *planner) finish() error {
	if len(p.plan.Segments) == 0 {
		return nil // Create has them
	}
	last := p.plan.Segments[len(p.plan.Segments)-1]
	if last.Sealed {
		p.create(last.ID+1, uint64(last.End))
	}
	p.plan.Base, p.plan.Next = p.plan.Segments[0].Base, last.End
	return nil
}

// follows checks that no segment is missing before one. Two files never have one id: their names are equal then.
func (p *planner) follows(i int) error {
	if i == 0 {
		return nil
	}
	if want, found := p.segments[i-1].id+1, p.segments[i].id; want != found {
		return p.refuse(SegmentMissing, FileName(want), want, 0, want, found, "a segment in the middle of the log is not there")
	}
	return nil
}

// header reads the header of a segment and checks that it is the one that belongs there.
func (p *planner) header(s listed) (Header, error) {
	b, err := p.w.bytes(0, HeaderSize)
	if err != nil {
		return Header{}, err
	}
	h, err := DecodeHeader(b)
	if err != nil {
		return Header{}, err
	}
	meta := p.plan.Meta
	switch {
	case h.Log != meta.Log:
		return Header{}, &CorruptionError{Kind: SegmentLog, Why: fmt.Sprintf("it is of log %s, and this is log %s", h.Log, meta.Log)}
	case h.NameHash != meta.NameHash:
		return Header{}, &CorruptionError{Kind: SegmentName, Expected: meta.NameHash, Found: h.NameHash, Why: "it is of another shard or kind of log"}
	case h.ID != s.id:
		return Header{}, &CorruptionError{Kind: SegmentID, Expected: s.id, Found: h.ID, Why: "it is another segment of this log"}
	}
	return h, p.joins(h.Base)
}

// joins checks that a segment begins where the one before it ends.
func (p *planner) joins(base id.Offset) error {
	n := len(p.plan.Segments)
	if n == 0 || p.plan.Segments[n-1].End == base {
		return nil
	}
	kind, end := ChainGap, p.plan.Segments[n-1].End
	if base < end {
		kind = ChainOverlap
	}
	return &CorruptionError{Kind: kind, Expected: uint64(end), Found: uint64(base), Why: "it does not begin at the offset at which the segment before it ends"}
}

// sealed takes a segment that has a successor.
func (p *planner) sealed(s listed) error {
	r, err := p.open(s)
	if err != nil {
		return err
	}
	defer r.Close() // it was only read
	h, err := p.header(s)
	if err != nil {
		return p.broken(err, s)
	}
	f := Found{Header: h, Name: s.Name, Size: s.Size, Sealed: true}
	if p.in.Verify == VerifyFull {
		err = p.readWhole(s, &f)
	} else {
		err = p.readFooter(s, &f)
	}
	if err != nil {
		return p.broken(err, s)
	}
	f.DataEnd, f.End, f.Batches, f.FileSum = f.Footer.Length, f.Footer.End, f.Footer.Batches, f.Footer.FileSum
	f.MinMicros, f.MaxMicros = f.Footer.MinMicros, f.Footer.MaxMicros
	p.plan.Segments = append(p.plan.Segments, f)
	return nil
}

// readWhole verifies every byte of a sealed segment, and its index against its batches.
func (p *planner) readWhole(s listed, f *Found) error {
	x, usable, err := p.index(&f.Header, s.Size-FooterSize)
	if err != nil {
		return err
	}
	checked := indexCheck{x: &x}
	walk, err := p.scan(s, &f.Header, 0, checked.note)
	got := walk.out
	switch {
	case err != nil:
		return err
	case !got.Sealed:
		return &CorruptionError{Kind: FooterMissing, Position: got.End, Why: "a segment follows, and this one was never sealed: its end is missing"}
	}
	f.Footer, f.Rebuild = got.Footer, !usable || !checked.good()
	return nil
}

// readFooter trusts the bytes of a sealed segment to its footer, and with VerifySealed reads those after the last entry of its index.
// If the footer cannot be used, the segment is read whole, to tell where it breaks.
func (p *planner) readFooter(s listed, f *Found) error {
	position := s.Size - FooterSize
	if position < HeaderSize {
		return p.readWhole(s, f)
	}
	b, err := p.w.bytes(position, FooterSize)
	if err != nil {
		return err
	}
	if f.Footer, err = DecodeFooter(b, p.salt); err != nil {
		return p.readWhole(s, f)
	}
	if err := f.Footer.fits(&f.Header, position, f.Footer.End); err != nil {
		return at(err, "", "", 0, position)
	}
	if f.Footer.End < f.Base {
		return &CorruptionError{Kind: FooterFields, Position: position, Expected: uint64(f.Base), Found: uint64(f.Footer.End), Why: "the segment ends before it begins"}
	}
	if p.in.Verify == VerifyLazy {
		return nil
	}
	return p.readTail(s, f)
}

// readTail reads a sealed segment from the last entry of its index.
func (p *planner) readTail(s listed, f *Found) error {
	x, usable, err := p.index(&f.Header, s.Size-FooterSize)
	if err != nil {
		return err
	}
	if !usable || len(x.Entries) == 0 {
		f.Rebuild = !usable
		return nil
	}
	last := x.Entries[len(x.Entries)-1]
	walk := scanner{w: p.w, salt: p.salt, h: &f.Header, out: Scanned{End: last.Position, Next: last.Offset}}
	err = walk.walk(&walk.out)
	var damaged *CorruptionError
	if errors.As(err, &damaged) {
		return p.readWhole(s, f) // either the index is wrong or the segment is
	}
	return err
}

// scan walks the segment in the window, and watches one position.
func (p *planner) scan(s listed, h *Header, watch int64, fn func(int64, *BatchHeader) error) (*scanner, error) {
	walk := &scanner{w: p.w, salt: p.salt, h: h, whole: true, fn: fn, watch: watch}
	sum, err := p.w.sum(0, 0, min(HeaderSize, s.Size))
	if err != nil {
		return walk, err
	}
	walk.out = Scanned{End: HeaderSize, Next: h.Base, FileSum: sum}
	return walk, walk.walk(&walk.out)
}
