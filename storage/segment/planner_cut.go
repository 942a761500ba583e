package segment

import "fmt"

// cutAt is what an operator's RepairCut does about the damage at segment i: the log ends there. All that follows goes, newest first;
// of the damaged segment, the batches before the damage stay. It stops the plan when it did.
func (p *planner) cutAt(failure error, i int) (bool, error) {
	broken, ok := failure.(*CorruptionError)
	if !ok || p.in.Repair < RepairCut || i == 0 && broken.Position < HeaderSize {
		return false, failure
	}
	damaged := p.segments[i]
	from := i // the first one that goes whole
	if broken.Segment == damaged.id && broken.Position >= HeaderSize {
		if err := p.cutInside(damaged); err != nil {
			return false, err
		}
		from = i + 1
	}
	for n := len(p.segments) - 1; n >= from; n-- {
		p.plan.Delete = append(p.plan.Delete, p.segments[n].Name)
		p.plan.TruncatedBytes += p.segments[n].Size
	}
	p.repaired(fmt.Sprintf("the log was cut at %s, byte %d, by an operator (%s)", broken.File, broken.Position, broken.Kind))
	return true, p.finish()
}

// cutInside makes a damaged segment the newest one: whole up to the damage, and open for appends.
func (p *planner) cutInside(s listed) error {
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
	walk, err := p.scan(s, &h, 0, func(position int64, b *BatchHeader) error {
		p.plan.Index.Note(position, b, p.in.Spacing)
		return nil
	})
	if _, damaged := p.broken(err, s).(*CorruptionError); err != nil && !damaged {
		return p.broken(err, s)
	}
	p.keep(s, &h, &walk.out)
	return p.judgeIndex(s, &h, &walk.out)
}
