package groupcore

import (
	"time"

	"github.com/felixd/felixd/wire/id"
)

// state is what a record in play is waiting for.
type state uint8

const (
	fetching state = iota // being read for a poll
	claimed               // settled or given back by whoever works on it, until its claim lapses
	owed                  // handed out again, to anybody
	delayed               // not to be had before a moment
	reserved              // handed out again, to one member until a moment
	listing               // given up on; finished when that is durable
	stateCount
)

// rec is a record in play: one that was chosen for a poll once, and is not finished.
type rec struct {
	offset   id.Offset
	state    state
	number   uint32 // how often it was handed out
	failures uint32 // how often that came to nothing
	noted    uint32 // failures, as the log has them
	again    bool   // its numbers were used before: it was redriven
	redriven bool   // it is finished as far as the cursor knows; the log of dead letters says that it is owed
	stored   bool   // the log may have a KindNumber of it
	single   bool   // and is to have one
	slot     int    // in play.all
	place    int    // in the heap that its state implies
	until    time.Duration
	poll     uint64 // while fetching
	conn     *conn  // that holds it, or held it last
	worker   *worker
	run      *run // that tells its number, nil if none does
}

// run is what one poll handed out for the first time, as one record of the log.
type run struct {
	start  id.Offset
	count  uint32
	live   int // records in play that rest on it
	stored bool
}

// alone reports whether a record is handed out by itself: it was handed out before.
func (r *rec) alone() bool { return r.number > 0 || r.again }

// play is all records in play.
type play struct {
	byOffset map[id.Offset]*rec
	all      []*rec // in no order that means anything, but always the same
	counts   [stateCount]int
	redriven int
	singles  int        // records of which the log is to have a KindNumber
	timers   heap[*rec] // claimed, delayed, reserved: by their moment
	retries  heap[*rec] // owed and handed out alone: by offset
	returned heap[*rec] // owed and not handed out yet: by offset
	runs     map[id.Offset]*run
	free     []*rec
	peak     int // the most that were in play since that was last let go of
}

// recsKept is how many finished records are kept to be used again: what a few polls hand out.
const recsKept = 4096

func newPlay() play {
	place := func(r *rec) *int { return &r.place }
	byOffset := func(a, b *rec) bool { return a.offset < b.offset }
	return play{
		byOffset: make(map[id.Offset]*rec), runs: make(map[id.Offset]*run),
		timers: heap[*rec]{place: place, less: func(a, b *rec) bool {
			return a.until < b.until || a.until == b.until && a.offset < b.offset
		}},
		retries: heap[*rec]{place: place, less: byOffset}, returned: heap[*rec]{place: place, less: byOffset},
	}
}

// heapOf is the heap that holds a record of its state, nil if none does.
func (p *play) heapOf(r *rec) *heap[*rec] {
	switch {
	case r.state == claimed || r.state == delayed || r.state == reserved:
		return &p.timers
	case r.state == owed && r.alone():
		return &p.retries
	case r.state == owed:
		return &p.returned
	}
	return nil
}

// add begins a record in a state.
func (p *play) add(o id.Offset, s state) *rec {
	var r *rec
	if n := len(p.free); n > 0 {
		r, p.free = p.free[n-1], p.free[:n-1]
	} else {
		r = &rec{}
	}
	*r = rec{offset: o, state: s, slot: len(p.all)}
	p.byOffset[o] = r
	p.all = append(p.all, r)
	p.peak = max(p.peak, len(p.all))
	p.enter(r)
	return r
}

func (p *play) enter(r *rec) {
	p.counts[r.state]++
	if h := p.heapOf(r); h != nil {
		h.push(r)
	}
	if r.state == reserved {
		r.worker.reserve(r)
	}
}

func (p *play) leave(r *rec) {
	p.counts[r.state]--
	if h := p.heapOf(r); h != nil {
		h.remove(r)
	}
	if r.state == reserved {
		r.worker.unreserve(r)
	}
}

// become moves a record to another state, which ends at until if that state ends.
func (p *play) become(r *rec, s state, until time.Duration) {
	p.leave(r)
	r.state, r.until = s, until
	p.enter(r)
}

// drop ends a record.
func (p *play) drop(r *rec) {
	p.leave(r)
	r.poll = 0 // a poll that it was chosen for may still know it
	delete(p.byOffset, r.offset)
	last := len(p.all) - 1
	p.all[r.slot] = p.all[last]
	p.all[r.slot].slot = r.slot
	p.all[last] = nil
	p.all = p.all[:last]
	if r.redriven {
		p.redriven--
	}
	p.unnumber(r)
	if len(p.free) < recsKept {
		p.free = append(p.free, r)
	}
}

// number says that the log is to have the number of a record by itself, and unnumber that it is not.
func (p *play) number(r *rec) {
	if !r.single {
		r.single = true
		p.singles++
	}
}

func (p *play) unnumber(r *rec) {
	if r.single {
		r.single = false
		p.singles--
	}
}

// held is how many records count against the bound.
func (p *play) held() int { return len(p.all) - p.counts[owed] }
