package segment

import "fmt"

// settle finishes what was begun at the head of the log, by what the mark says: a reset, or a pass of retention. Then it looks
// whether a head is there at all.
func (p *planner) settle() error {
	m := p.plan.Mark
	if m != nil && m.Reset {
		p.dropBefore(m.Segment, false)
	} else if m != nil {
		p.dropBefore(m.Oldest, true)
	}
	defer p.expect()
	if len(p.segments) == 0 {
		return p.empty()
	}
	first := p.segments[0]
	if m == nil || m.Reset || first.id == m.Oldest {
		return nil
	}
	err := p.refuse(SegmentMissing, FileName(m.Oldest), m.Oldest, 0, m.Oldest, first.id, "the log's first segment is not there; what it held was not let go by retention")
	return p.accept(RepairCut, err, fmt.Sprintf("the log begins at segment %d: those from %d on are missing", first.id, m.Oldest))
}

// dropBefore deletes the segments before one: oldest first, as retention does, or newest first, as a reset does. A power cut in the
// middle then leaves no gap.
func (p *planner) dropBefore(segmentID uint64, oldestFirst bool) {
	n := 0
	for n < len(p.segments) && p.segments[n].id < segmentID {
		n++
	}
	for i := range n {
		if !oldestFirst {
			i = n - 1 - i
		}
		p.plan.Delete = append(p.plan.Delete, p.segments[i].Name)
	}
	p.segments = p.segments[n:]
}

// empty decides about a log without segments: one that never had any, one in the middle of a reset, or one that lost them.
func (p *planner) empty() error {
	m := p.plan.Mark
	_, marked := p.small[MarkName]
	switch {
	case m != nil && m.Reset:
		p.create(m.Segment, uint64(m.Base))
		return nil
	case m == nil && !p.reported() && !marked:
		p.create(0, uint64(p.in.Base))
		return nil
	case m == nil:
		return p.refuse(SegmentMissing, FileName(0), 0, 0, 0, 0, "the log was in use, and no segment is left of it")
	}
	err := p.refuse(SegmentMissing, FileName(m.Segment), m.Segment, 0, 0, 0, "no segment is left of the log")
	if err := p.accept(RepairCut, err, "the log begins anew: no segment was left"); err != nil {
		return err
	}
	p.create(m.Segment, uint64(m.Base))
	return nil
}

// blank lets a newest segment go that was made and never installed: there is no header in it, so there is no batch in it either. It
// must not be one that the mark vouches for, and where no mark was made yet it must be the very first one.
func (p *planner) blank() error {
	if len(p.segments) == 0 {
		return nil
	}
	newest, m := p.segments[len(p.segments)-1], p.plan.Mark
	blank, err := p.isBlank(newest)
	if err != nil || !blank {
		return err
	}
	only := len(p.segments) == 1
	_, marked := p.small[MarkName] // even if it cannot be used, or if the log's id is known: the first segment was whole once
	switch {
	case m == nil && (marked || !only || newest.id != 0 || p.reported()):
		return nil // its header is refused
	case m != nil && (m.Segment > newest.id || m.Segment == newest.id && m.Synced > HeaderSize):
		return nil
	case m != nil && only && m.Segment != newest.id:
		return nil // nobody says where it begins
	}
	p.plan.Delete = append(p.plan.Delete, newest.Name)
	p.segments = p.segments[:len(p.segments)-1]
	if only {
		base := uint64(p.in.Base)
		if m != nil {
			base = uint64(m.Base)
		}
		p.create(newest.id, base)
	}
	return nil
}

// isBlank reports whether a segment is shorter than a header, or nothing but the room for one.
func (p *planner) isBlank(s listed) (bool, error) {
	if s.Size != HeaderSize {
		return s.Size < HeaderSize, nil
	}
	r, err := p.open(s)
	if err != nil {
		return false, err
	}
	defer r.Close() // it was only read
	zeros, err := zeroTail(p.w, 0, 0)
	return zeros, p.broken(err, s)
}

// behindMark refuses a log whose newest segment is older than the one the mark names. A segment that was made and holds nothing may
// be missing: it is made again.
func (p *planner) behindMark() error {
	m := p.plan.Mark
	if m == nil || len(p.segments) == 0 {
		return nil
	}
	newest := p.segments[len(p.segments)-1]
	if m.Segment <= newest.id || m.Segment == newest.id+1 && m.Synced == HeaderSize {
		return nil
	}
	err := p.refuse(SegmentMissing, FileName(m.Segment), m.Segment, 0, m.Segment, newest.id, "the newest segment is not there")
	return p.accept(RepairCut, err, fmt.Sprintf("the log ends with segment %d: those up to %d are missing", newest.id, m.Segment))
}

// create plans a new newest segment.
func (p *planner) create(segmentID, base uint64) {
	meta := p.plan.Meta
	p.plan.Create = &Header{Log: meta.Log, NameHash: meta.NameHash, ID: segmentID}
	p.plan.Create.Base = p.plan.Create.Base.Add(base)
	p.plan.Base, p.plan.Next = p.plan.Create.Base, p.plan.Create.Base
}

// accept lets a refusal pass that the operator allowed.
func (p *planner) accept(needed Repair, refusal error, what string) error {
	if p.in.Repair < needed {
		return refusal
	}
	p.repaired(what)
	return nil
}

// repaired notes a repair in the plan's sentence.
func (p *planner) repaired(what string) {
	if p.plan.Repaired != "" {
		what = p.plan.Repaired + "; " + what
	}
	p.plan.Repaired = what
}
