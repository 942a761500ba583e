package main

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

// answered judges what became of a try.
func (p *dproducer) answered(t *dconn, a *dask, b *dbatch, request, number uint64, got answer) error {
	run := p.c.run
	o, err := run.judge(request, got)
	if err != nil || number != p.id {
		return err
	}
	switch {
	case o.acked:
		return p.acked(a, b, o)
	case o.reason != nil:
		p.stuck = true
		if err := p.gap(b, o.reason); err != nil {
			return err
		}
	}
	p.stuck = true
	if !o.refused {
		b.lost = true
	}
	if b.lost {
		return nil
	}
	for _, id := range b.ids {
		if err := run.book.refused(id); err != nil {
			return err
		}
	}
	return nil
}

func (p *dproducer) acked(a *dask, b *dbatch, o outcome) error {
	run := p.c.run
	if !o.offset.Set {
		return fmt.Errorf("a numbered batch was acknowledged without an offset")
	}
	if err := p.shard.acked(o.offset.V, b.ids, a.sent); err != nil {
		return err
	}
	if b.conns > 1 {
		run.marks.hit(dmarkResent)
	}
	b.offset, b.lost = o.offset.V, false
	for i, x := range p.open {
		if x != b {
			continue
		}
		if i > 0 && !p.stuck {
			return fmt.Errorf("batch %d was acknowledged before batch %d", b.sequence, p.open[0].sequence)
		}
		p.open = append(p.open[:i:i], p.open[i+1:]...)
		break
	}
	p.last, p.c.vain = b, 0
	return nil
}

// gap judges a refusal for the numbers of a batch. A batch of an id that the shard does not know, or one that comes too early, is so only
// because an earlier one was not taken; or because what was acknowledged is gone, by retention or with the power.
func (p *dproducer) gap(b *dbatch, why *wire.RefusedReason) error {
	run := p.c.run
	gone := p.cuts != p.shard.cuts || run.plan.trims()
	earlier := p.open[0] != b
	switch why.Kind {
	case wire.RefusedSequenceGap:
		run.marks.hit(dmarkGap)
	case wire.RefusedUnknownProducer:
		run.marks.hit(dmarkUnknownProducer)
	case wire.RefusedSequenceExpired:
		if !b.lost || !gone || earlier {
			return fmt.Errorf("refused: %v", why.Kind)
		}
		p.open = p.open[1:] // it was appended, and is gone
		return nil
	default:
		return fmt.Errorf("refused: %v", why.Kind)
	}
	if !gone && !earlier {
		return fmt.Errorf("refused: %v, and every batch before it was acknowledged", why.Kind)
	}
	if !earlier {
		p.id = 0 // a new one
	}
	return nil
}

// repeat sends an acknowledged batch once more: the answer is the offset that it has.
func (p *dproducer) repeat(t *dconn, b *dbatch) bool {
	run, request, cuts := p.c.run, p.c.run.nextID(), p.shard.cuts
	return t.send(&dask{what: fmt.Sprintf("batch %d of producer %x again", b.sequence, p.id), take: func(_ *dask, got answer) error {
		o, err := run.judge(request, got)
		switch {
		case err != nil:
			return err
		case cuts != p.shard.cuts || p.cuts != cuts:
			return nil // it may be gone, and taken anew
		case o.acked && o.offset.V != b.offset:
			return fmt.Errorf("batch %d lies at %d, and its repetition was answered %d", b.sequence, b.offset, o.offset.V)
		case o.acked:
			run.marks.hit(dmarkDuplicate)
		case o.reason != nil:
			return fmt.Errorf("batch %d was acknowledged, and its repetition refused: %v", b.sequence, o.reason.Kind)
		}
		return nil
	}}, p.encode(b, request))
}
