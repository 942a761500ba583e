package shardcore

import (
	"fmt"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

const (
	// producerBatches is how many batches of one producer are remembered. A client keeps at most as many in flight, so whatever it sends
	// again after a lost connection is still known.
	producerBatches = 64
	// producersMax is how many producers of one shard are remembered, 6 MiB with all their batches. Beyond it the one whose newest batch
	// is oldest is forgotten.
	producersMax = 4096
)

// Numbered is what a log tells of one batch of an idempotent producer.
type Numbered struct {
	Producer uint64 // 0 = not numbered
	Sequence uint64
	Base     id.Offset
	Count    uint32
	Sum      uint32 // CRC-32C of the body, see batch.Batch.Sum
	Length   uint32 // of the body, in bytes
}

// numberedOf is what Note is told of a batch.
func numberedOf(b *batch.Batch) Numbered {
	return Numbered{Producer: b.ProducerID, Sequence: b.Sequence, Base: b.Base, Count: b.Count, Sum: b.Summarize(), Length: uint32(len(b.Body))}
}

// Producers remembers the newest batches of the producers of one log, so that a batch that is sent again is known. What it holds follows
// from the batches of the log alone: every replica that noted the same batches and was trimmed alike holds the same, and so does one
// that begins later, at the base of the log.
//
//  1. it holds at most 4096 producers, each with 1 to 64 batches of consecutive sequences and ascending offsets;
//  2. from oldest to newest, the newest batches of the producers ascend;
//  3. no batch lies below the offset it was trimmed to, and none ends above end.
//
// The zero value is not ready for use. A Producers has one owner.
type Producers struct {
	byID           map[uint64]*producer
	oldest, newest *producer // by newest batch
	free           *producer // one that was forgotten, to be used again
	max, each      int       // producers, and batches of each
	end            id.Offset // after the last batch noted
}

// producer is one of them. ring holds its batches, oldest at head.
type producer struct {
	id           uint64
	last         uint64 // sequence of the newest batch
	ring         []stored
	head         int
	count        int
	older, newer *producer
}

// stored is a remembered batch.
type stored struct {
	base   id.Offset
	count  uint32
	sum    uint32
	length uint32
}

func (s stored) end() id.Offset { return s.base.Add(uint64(s.count)) }

// NewProducers returns an empty memory.
func NewProducers() *Producers { return newProducers(producersMax, producerBatches) }

func newProducers(producers, batches int) *Producers {
	return &Producers{byID: make(map[uint64]*producer), max: producers, each: batches}
}

// Len is how many producers are known.
func (p *Producers) Len() int { return len(p.byID) }

// Note takes a batch of the log, in the order of the log; one that is not numbered only moves the end. A batch that does not continue
// its producer's numbers begins that producer anew. Note panics when the batch lies below one that was noted.
func (p *Producers) Note(n Numbered) {
	if n.Base < p.end || n.Count == 0 {
		panic(fmt.Sprintf("shardcore: a batch of %d records at %d is noted, and those below %d were", n.Count, n.Base, p.end))
	}
	p.end = n.Base.Add(uint64(n.Count))
	if n.Producer == 0 {
		return
	}
	x := p.byID[n.Producer]
	if x == nil {
		if len(p.byID) == p.max {
			p.forget(p.oldest)
		}
		x = p.enter(n.Producer)
	} else {
		p.unlink(x)
		if n.Sequence != x.last+1 {
			x.head, x.count = 0, 0
		}
	}
	x.push(stored{base: n.Base, count: n.Count, sum: n.Sum, length: n.Length}, p.each)
	x.last = n.Sequence
	p.link(x)
}

// Trim forgets the batches that begin below base, and the producers that have no others.
func (p *Producers) Trim(base id.Offset) {
	for x := p.oldest; x != nil; {
		next := x.newer
		for x.count > 0 && x.at(0).base < base {
			x.head, x.count = (x.head+1)%len(x.ring), x.count-1
		}
		if x.count == 0 {
			p.forget(x)
		}
		x = next
	}
}

// find returns the remembered batch of that sequence. known says whether the producer is, next is the sequence after its newest.
func (p *Producers) find(id, sequence uint64) (s stored, found, known bool, next uint64) {
	x := p.byID[id]
	if x == nil {
		return stored{}, false, false, 0
	}
	if back := x.last - sequence; sequence <= x.last && back < uint64(x.count) {
		return x.at(x.count - 1 - int(back)), true, true, x.last + 1
	}
	return stored{}, false, true, x.last + 1
}

// at is the i-th batch remembered, oldest first.
func (x *producer) at(i int) stored { return x.ring[(x.head+i)%len(x.ring)] }

// push appends the newest batch; the oldest gives way when there are enough. The ring grows as far as a producer needs it.
func (x *producer) push(s stored, most int) {
	if x.count == len(x.ring) && x.count < most {
		larger := make([]stored, min(max(4, 2*len(x.ring)), most))
		for i := range x.count {
			larger[i] = x.at(i)
		}
		x.ring, x.head = larger, 0
	}
	if x.count == len(x.ring) {
		x.ring[x.head] = s
		x.head = (x.head + 1) % len(x.ring)
		return
	}
	x.ring[(x.head+x.count)%len(x.ring)] = s
	x.count++
}

// enter makes room for a producer that is not known; it is linked by whoever fills it.
func (p *Producers) enter(id uint64) *producer {
	x := p.free
	if p.free = nil; x == nil {
		x = &producer{}
	}
	x.id = id
	p.byID[id] = x
	return x
}

func (p *Producers) forget(x *producer) {
	p.unlink(x)
	delete(p.byID, x.id)
	x.head, x.count = 0, 0
	p.free = x
}

// link puts a producer at the newest end.
func (p *Producers) link(x *producer) {
	x.older, x.newer = p.newest, nil
	if p.newest != nil {
		p.newest.newer = x
	} else {
		p.oldest = x
	}
	p.newest = x
}

func (p *Producers) unlink(x *producer) {
	if x.older != nil {
		x.older.newer = x.newer
	} else {
		p.oldest = x.newer
	}
	if x.newer != nil {
		x.newer.older = x.older
	} else {
		p.newest = x.older
	}
	x.older, x.newer = nil, nil
}
