package segment

import "errors"

// index reads the index of a segment whose batches end at end; false if there is none that can be used.
func (p *planner) index(h *Header, end int64) (Index, bool, error) {
	e, there := p.indexes[h.ID]
	if !there {
		return Index{}, false, nil
	}
	// No segment needs more entries than it has room for batches: a longer file is not read.
	most := IndexHeaderSize + IndexEntrySize*(max(end, 0)/BatchHeaderSize+1)
	if e.Size > most {
		p.warn("%s is longer than any index of its segment: it is written anew", e.Name)
		return Index{}, false, nil
	}
	b, err := p.whole(e, most)
	if err != nil {
		return Index{}, false, err
	}
	x, err := DecodeIndex(b, p.salt, h, end)
	if err != nil {
		p.warn("%s is written anew: %s", e.Name, reason(err))
		return Index{}, false, nil
	}
	return x, true, nil
}

// indexCheck compares an index with the batches of its segment while they are walked.
type indexCheck struct {
	x     *Index
	seen  int
	wrong bool
}

func (c *indexCheck) note(position int64, b *BatchHeader) error {
	if c.seen == len(c.x.Entries) || c.x.Entries[c.seen].Position > position {
		return nil
	}
	want := IndexEntry{Offset: b.Base, Position: position, Micros: b.AppendMicros}
	c.wrong = c.wrong || c.x.Entries[c.seen] != want
	c.seen++
	return nil
}

// good reports whether every entry is a batch.
func (c *indexCheck) good() bool { return !c.wrong && c.seen == len(c.x.Entries) }

// reason is the short form of what is wrong with a file that is not needed.
func reason(err error) string {
	var damaged *CorruptionError
	if errors.As(err, &damaged) {
		return damaged.Why
	}
	return err.Error()
}
