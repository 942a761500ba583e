package segment

import (
	"fmt"
	"io"
)

// progress counts what was read of the segments.
type progress struct {
	done, total int64
	report      func(done, total int64)
}

func (g *progress) add(n int) {
	g.done = min(g.done+int64(n), g.total) // a piece at the end of a buffer may be read twice
	if g.report != nil {
		g.report(g.done, g.total)
	}
}

// counted is a segment whose reads count.
type counted struct {
	Reader
	g *progress
}

func (c counted) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.Reader.ReadAt(b, off)
	c.g.add(n)
	return n, err
}

// expect says how much is going to be read.
func (p *planner) expect() {
	p.read = &progress{report: p.in.Progress}
	for i, s := range p.segments {
		if p.in.Verify == VerifyFull || i == len(p.segments)-1 {
			p.read.total += s.Size
		} else {
			p.read.total += HeaderSize + FooterSize
		}
	}
}

// open opens a segment and slides the window over it. The window's buffer is no longer than the longest segment so far: a broker opens
// thousands of logs of a few hundred bytes.
func (p *planner) open(s listed) (Reader, error) {
	r, err := p.in.Open(s.Name)
	if err != nil {
		return nil, fmt.Errorf("plan log %s: open %s: %w", p.in.Shard, s.Name, err)
	}
	if p.read != nil {
		r = counted{r, p.read}
	}
	if p.w == nil || int64(len(p.w.buf)) < min(bufferSize, s.Size) {
		p.w = newWindow(r, s.Size)
	}
	p.w.reset(r, s.Size)
	return r, nil
}

// whole reads a file, or, of one that is longer than size, enough of it to see that.
func (p *planner) whole(e Entry, size int64) ([]byte, error) {
	r, err := p.in.Open(e.Name)
	if err != nil {
		return nil, fmt.Errorf("plan log %s: open %s: %w", p.in.Shard, e.Name, err)
	}
	defer r.Close() // it was only read
	b := make([]byte, min(e.Size, size+1))
	if n, err := r.ReadAt(b, 0); n < len(b) {
		if err == io.EOF || err == nil {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("plan log %s: read %s: %w", p.in.Shard, e.Name, err)
	}
	return b, nil
}

// broken tells errors of reading from those about what was read, and puts their place into the latter.
func (p *planner) broken(err error, s listed) error {
	switch err.(type) {
	case nil:
		return nil
	case *CorruptionError, *VersionError:
		return at(err, p.in.Shard, s.Name, s.id, 0)
	}
	return fmt.Errorf("plan log %s: %s: %w", p.in.Shard, s.Name, err)
}
