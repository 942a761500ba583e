package segment

import (
	"fmt"
	"math"
)

// everything is what a mark vouches for that names a later segment.
const everything = math.MaxInt64

// newest takes the newest segment: the only one that may end in the middle of something.
func (p *planner) newest(s listed) error {
	r, err := p.open(s)
	if err != nil {
		return err
	}
	defer r.Close() // it was only read
	h, err := p.header(s)
	if err != nil {
		return p.broken(err, s)
	}
	p.plan.Index = Index{ID: h.ID, Base: h.Base}
	synced, known := p.vouched(&h)
	walk, err := p.scan(s, &h, synced, func(position int64, b *BatchHeader) error {
		p.plan.Index.Note(position, b, p.in.Spacing)
		return nil
	})
	got := &walk.out
	if err != nil {
		err = p.tail(s, got, p.broken(err, s), synced, known)
	} else {
		err = p.short(s, got, synced, known)
	}
	if err == nil {
		err = p.sameBytes(s, walk)
	}
	if err != nil {
		return err
	}
	p.keep(s, &h, got)
	return p.judgeIndex(s, &h, got)
}

// sameBytes refuses a newest segment that is whole up to the mark, and is another one than the mark was written for.
func (p *planner) sameBytes(s listed, walk *scanner) error {
	m := p.plan.Mark
	if m == nil || m.Segment != s.id {
		return nil
	}
	var err error
	switch {
	case m.Base != walk.h.Base:
		err = p.refuse(MarkMismatch, s.Name, s.id, 0, uint64(m.Base), uint64(walk.h.Base), "the mark says that it begins at another offset: one of the two is an old copy")
	case m.Summed && walk.out.Size() >= m.Synced && !walk.passed:
		err = p.refuse(MarkMismatch, s.Name, s.id, m.Synced, 0, 0, "no batch ends where the synced bytes do: this segment or the mark is an old copy")
	case m.Summed && walk.out.Size() >= m.Synced && walk.watched != m.Sum:
		err = p.refuse(MarkMismatch, s.Name, s.id, m.Synced, uint64(m.Sum), uint64(walk.watched), "the bytes before the mark are not those that were synced: this segment or the mark is an old copy")
	default:
		return nil
	}
	return p.accept(RepairTail, err, s.Name+" is taken although it is not the segment that the mark was written for")
}

// vouched is how many bytes of the newest segment are known to have been synced; false if nothing is known.
func (p *planner) vouched(h *Header) (int64, bool) {
	m := p.plan.Mark
	switch {
	case m == nil:
		return 0, false
	case m.Segment == h.ID:
		return m.Synced, true
	case m.Segment > h.ID:
		return everything, true
	case m.Segment+1 == h.ID:
		return HeaderSize, true
	}
	p.warn("%s is not used: it names segment %d and the newest is %d: nothing is repaired that may have been synced", MarkName, m.Segment, h.ID)
	return 0, false
}

// tail judges the first failure in the newest segment. What is past the mark was never vouched for and is cut, whatever it looks
// like. What is before it was synced once, so that it is damage. Without a mark, only what a crash alone leaves is cut.
func (p *planner) tail(s listed, got *Scanned, failure error, synced int64, known bool) error {
	broken, ok := failure.(*CorruptionError)
	if !ok {
		return failure
	}
	unfinished, err := p.unfinished(s, broken)
	if err != nil {
		return err
	}
	switch {
	case known && broken.Position >= synced:
		p.repaired(fmt.Sprintf("%s ended in %d bytes past the durable mark that are no batch (%s)", s.Name, s.Size-got.Size(), broken.Kind))
		return nil
	case !known && unfinished:
		p.repaired(fmt.Sprintf("%s ended in %d bytes of a write that was not finished (%s)", s.Name, s.Size-got.Size(), broken.Kind))
		return nil
	case known && unfinished && synced != everything:
		failure = p.refuse(TailBelowDurableMark, s.Name, s.id, got.End, uint64(synced), uint64(got.End), fmt.Sprintf("the log would have to be cut before bytes that were synced (%s)", broken.Kind))
	}
	return p.allowed(s, got, broken.Kind, failure)
}

// unfinished reports whether a failure is what a crash leaves of a write: the file ends too early, or in zeros that were never written.
func (p *planner) unfinished(s listed, broken *CorruptionError) (bool, error) {
	if broken.Kind == Truncated {
		return true, nil
	}
	inside := int64(BatchHeaderSize)
	head, err := p.w.bytes(broken.Position, BatchHeaderSize)
	if err != nil {
		return false, p.broken(err, s)
	}
	if b, err := DecodeBatchHeader(head, p.salt); err == nil {
		inside = b.Size()
	}
	zeros, err := zeroTail(p.w, broken.Position, inside)
	return zeros, p.broken(err, s)
}

// allowed lets a failure in the newest segment pass, if an operator said so and nothing follows that is a batch.
func (p *planner) allowed(s listed, got *Scanned, kind Kind, failure error) error {
	switch p.in.Repair {
	case RepairNone:
		return failure
	case RepairTail:
		follows, err := batchFollows(p.w, p.salt, got.End)
		if err != nil {
			return p.broken(err, s)
		}
		if follows {
			return failure
		}
	}
	p.repaired(fmt.Sprintf("%s was cut at byte %d by an operator (%s)", s.Name, got.Size(), kind))
	return nil
}

// short refuses a newest segment that is whole and ends before bytes that were synced.
func (p *planner) short(s listed, got *Scanned, synced int64, known bool) error {
	if !known || got.Size() >= synced || synced == everything && got.Sealed {
		return nil
	}
	err := p.refuse(TailBelowDurableMark, s.Name, s.id, got.End, uint64(synced), uint64(got.Size()), "the file ends before bytes that were synced")
	if synced == everything {
		err = p.refuse(FooterMissing, s.Name, s.id, got.End, 0, 0, "the mark names a later segment, and this one was never sealed: its end is missing")
	}
	return p.accept(RepairTail, err, fmt.Sprintf("%s ends at byte %d, before bytes that were synced", s.Name, got.Size()))
}

// keep takes the newest segment into the plan, with what is not whole cut off.
func (p *planner) keep(s listed, h *Header, got *Scanned) {
	f := Found{Header: *h, Name: s.Name, End: got.Next, DataEnd: got.End, Size: got.Size(), Sealed: got.Sealed, Footer: got.Footer,
		Batches: got.Batches, MinMicros: got.MinMicros, MaxMicros: got.MaxMicros, FileSum: got.FileSum}
	if f.Size < s.Size {
		p.plan.Cut = &Cut{Segment: s.id, Name: s.Name, Size: f.Size, Was: s.Size}
		p.plan.TruncatedBytes += s.Size - f.Size
	}
	p.plan.Segments = append(p.plan.Segments, f)
}

// judgeIndex says whether the index on disk is the one that the newest segment needs.
func (p *planner) judgeIndex(s listed, h *Header, got *Scanned) error {
	x, usable, err := p.index(h, got.End)
	if err != nil {
		return err
	}
	same := usable && len(x.Entries) == len(p.plan.Index.Entries)
	for i := 0; same && i < len(x.Entries); i++ {
		same = x.Entries[i] == p.plan.Index.Entries[i]
	}
	p.plan.Segments[len(p.plan.Segments)-1].Rebuild = !same
	return nil
}
