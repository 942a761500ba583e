package diskpool

import "time"

// Count is how many jobs of one kind there are.
type Count struct {
	Running int // have a worker
	Queued  int // wait for one, or for their owner's former job
	Stalled int // of both, those older than StallAfter
}

// Stats is a pool at one moment.
type Stats struct {
	Jobs    [kinds]Count  // in the order of Kinds
	Workers int           // goroutines, idle ones too
	Idle    int           // of those, the idle ones
	Oldest  time.Duration // age of the oldest job that did not end; 0 without one
}

// Of is the count of one kind.
func (s Stats) Of(k Kind) Count { return s.Jobs[k-1] }

// Stats counts.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Jobs: p.counts, Workers: p.total}
	for w := p.idle.first; w != nil; w = w.next {
		s.Idle++
	}
	if p.all.first != nil {
		s.Oldest = p.clock.Now().Sub(p.all.first.since)
	}
	return s
}
