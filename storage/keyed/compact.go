package keyed

import (
	"fmt"

	"github.com/felixd/felixd/wire/id"
)

// Encoder appends to dst the payload of a record that, decoded, moves e: with its key, value, expiry and version. It keeps nothing of e.
type Encoder func(dst []byte, e Entry) []byte

// CompactionOptions are what a Compaction is made with.
type CompactionOptions struct {
	// Encode makes the records. nil: nothing is copied, and the head goes only if no entry stands there any more. That is for a follower,
	// which gets its leader's copies like all other records.
	Encode Encoder
	// Records and Bytes bound one AppendMoved and one ReadValues; a larger record goes alone. 0 means 64 and 64 KiB, which is what one
	// publish may be: copies take turns with clients' writes, and are no larger than those.
	Records, Bytes int
	// Rounds is how often the index is looked at at most, the last time to see that nothing is left. 0 means 4.
	Rounds int
}

// Compaction moves the live records of a log's head to its tail and has the head removed. It does nothing itself: Next returns what is to
// be done, and is called with what came of it. It can be given up after any step, by not calling it any more or by Failed, and so can the
// process: until RetainFrom nothing is missing, and then everything is there twice and durable.
//
//		SealLog -> { Pause | ReadValues | AppendMoved }* -> FlushLog -> RetainFrom -> Finished
//
//	 1. RetainFrom comes only after a look at the whole index found no entry below the cut, and a flush of all that was folded by then;
//	 2. an entry never gets an offset below the cut later: offsets of a key only grow;
//	 3. AppendMoved holds entries as they are in the index when Next returns, and none that staged says is about to change.
type Compaction struct {
	index  *Index
	opts   CompactionOptions
	awaits string // the input that has to come; "" before the first call
	ended  bool

	cut    id.Offset
	until  id.Offset // nothing is looked at before the fold has come here
	round  int
	cursor Cursor
	found  int // entries below the cut in this round
	keys   []byte
	todo   []candidate // of the segment that was looked at last, with their keys in keys
	places []Place     // asked for by ReadValues
	ready  []moved     // values that came and are not appended yet
	asked  AppendMoved // what Moved is awaited for
	before chosen      // what todo, places and ready were before asked was made of them
	result Result
}

// chosen is what is to be copied, in the order in which it is.
type chosen struct {
	todo   []candidate
	places []Place
	ready  []moved
}

type candidate struct{ from, to int } // of keys

type moved struct {
	place Place
	value []byte
}

// NewCompaction returns one that has not begun.
func NewCompaction(x *Index, o CompactionOptions) *Compaction {
	if o.Records <= 0 {
		o.Records = 64
	}
	if o.Bytes <= 0 {
		o.Bytes = 64 << 10
	}
	if o.Rounds <= 0 {
		o.Rounds = 4
	}
	return &Compaction{index: x, opts: o}
}

// scanSegments is how many segments of the table one call looks at: some hundred microseconds.
const scanSegments = 4

// Next takes what came of the effect before, nil the first time, and returns the next effect. An input that does not answer that effect, or
// says that something is folded which is not, is a broken invariant of the driver.
func (c *Compaction) Next(in Input, turn Turn) Effect {
	if c.ended {
		panic("keyed: a compaction that has finished was given an input")
	}
	if failed, ok := in.(Failed); ok && c.awaits != "" {
		c.result.Err = failed.Err
		return c.finish()
	}
	if _, ok := in.(Stale); ok && c.awaits == "Moved" {
		c.todo, c.places, c.ready = c.before.todo, c.before.places, c.before.ready
		return c.ask(Pause{}, "Resume") // or who is never at the tail would be asked for ever, in one turn
	}
	if got := nameOf(in); got != c.awaits {
		panic(fmt.Sprintf("keyed: a compaction got %s instead of %s", got, c.awaits))
	}
	switch in := in.(type) {
	case nil:
		return c.ask(SealLog{}, "Sealed")
	case Sealed:
		c.cut, c.until = in.Cut, in.Cut
		c.round = 1
	case Values:
		c.take(in)
	case Flushed:
		return c.ask(RetainFrom{Offset: c.cut}, "Retained")
	case Retained:
		c.result.Cut = c.cut
		return c.finish()
	case Moved:
		if c.index.AsOf() < c.asked.Base.Add(uint64(c.asked.Count)) {
			panic("keyed: a compaction was told that records are folded which are not")
		}
		c.result.Moved += int(c.asked.Count)
		c.result.Bytes += int64(len(c.asked.Body)) + storedBatch
	case Resume, Stale, Failed:
	}
	return c.advance(turn)
}

func nameOf(in Input) string {
	switch in.(type) {
	case nil:
		return ""
	case Sealed:
		return "Sealed"
	case Resume:
		return "Resume"
	case Values:
		return "Values"
	case Moved:
		return "Moved"
	case Stale:
		return "Stale"
	case Flushed:
		return "Flushed"
	case Retained:
		return "Retained"
	case Failed:
	}
	return "Failed"
}

func (c *Compaction) ask(e Effect, awaits string) Effect {
	c.awaits = awaits
	return e
}

func (c *Compaction) finish() Effect {
	c.ended = true
	c.result.Left = c.found
	c.keys, c.todo, c.places, c.ready, c.asked, c.before = nil, nil, nil, nil, AppendMoved{}, chosen{}
	return Finished{Result: c.result}
}

// take keeps the values that were read.
func (c *Compaction) take(in Values) {
	if len(in.List) != len(c.places) {
		panic("keyed: a compaction got another number of values than it asked for")
	}
	for i, v := range in.List {
		c.ready = append(c.ready, moved{c.places[i], v})
	}
	c.places = nil
}

// advance finds the next thing to do in this round or the next.
func (c *Compaction) advance(turn Turn) Effect {
	if c.index.AsOf() < c.until {
		return c.ask(Pause{Until: c.until}, "Resume")
	}
	for looked := 0; ; {
		if e := c.copyValues(turn); e != nil {
			return e
		}
		if e := c.copyEntries(turn); e != nil {
			return e
		}
		if c.cursor.Done() {
			if e := c.endRound(turn); e != nil {
				return e
			}
		}
		if looked == scanSegments {
			return c.ask(Pause{}, "Resume")
		}
		c.look()
		looked++
	}
}

// endRound decides what follows a look at the whole index. Another one comes once what is claimed by now is folded: an entry that was left alone
// because it was about to change has changed then.
func (c *Compaction) endRound(turn Turn) Effect {
	switch {
	case c.found == 0:
		return c.ask(FlushLog{Through: c.index.AsOf()}, "Flushed")
	case c.round == c.opts.Rounds || c.opts.Encode == nil:
		return c.finish()
	}
	c.round++
	c.cursor, c.found = 0, 0
	if c.until = turn.Tail; c.index.AsOf() < c.until {
		return c.ask(Pause{Until: c.until}, "Resume")
	}
	return nil
}

// look finds the entries below the cut in the next segment of the table.
func (c *Compaction) look() {
	c.keys, c.todo = c.keys[:0], c.todo[:0]
	c.cursor = c.index.Scan(c.cursor, nil, func(e Entry) {
		if e.Offset >= c.cut {
			return
		}
		c.found++
		from := len(c.keys)
		c.keys = append(c.keys, e.Key...)
		c.todo = append(c.todo, candidate{from, len(c.keys)})
	})
	if c.opts.Encode == nil {
		c.todo = c.todo[:0]
	}
}

// copyEntries makes a batch of the entries that were found; it collects those on the way whose values have to be read. nil: there are none
// left.
func (c *Compaction) copyEntries(turn Turn) Effect {
	var out region
	var wanted int
	c.before = c.chosen()
	c.index.mu.RLock()
	defer c.index.mu.RUnlock()
	for len(c.todo) > 0 {
		key := c.keys[c.todo[0].from:c.todo[0].to]
		b := c.index.lookup(key)
		if b == nil || id.Offset(b.offset()) >= c.cut || turn.Staged(key) {
			c.todo = c.todo[1:]
			continue
		}
		e := b.entry()
		size := len(e.Key) + e.ValueBytes + entryHeader
		if e.Cold {
			if len(c.places) > 0 && (len(c.places) >= c.opts.Records || wanted+size > c.opts.Bytes) {
				break
			}
			wanted += size
			c.places = append(c.places, Place{Key: append([]byte(nil), key...), Offset: e.Offset})
		} else {
			if !out.fits(size, &c.opts) {
				break
			}
			out.add(c.opts.Encode, e)
		}
		c.todo = c.todo[1:]
	}
	if out.count > 0 {
		return c.append(&out, turn.Tail)
	}
	if len(c.places) > 0 {
		return c.ask(ReadValues{Places: c.places}, "Values")
	}
	return nil
}

// copyValues makes a batch of values that were read, of the entries that are still what they were then. nil: there are none left.
func (c *Compaction) copyValues(turn Turn) Effect {
	var out region
	c.before = c.chosen()
	c.index.mu.RLock()
	defer c.index.mu.RUnlock()
	for len(c.ready) > 0 {
		m := &c.ready[0]
		b := c.index.lookup(m.place.Key)
		if b != nil && id.Offset(b.offset()) == m.place.Offset && !turn.Staged(m.place.Key) {
			e := b.entry()
			if len(m.value) != e.ValueBytes {
				panic("keyed: a compaction got a value of another length than the entry says")
			}
			if !out.fits(len(e.Key)+e.ValueBytes+entryHeader, &c.opts) {
				break
			}
			e.Value, e.Cold = m.value, false
			out.add(c.opts.Encode, e)
		}
		c.ready = c.ready[1:]
	}
	if out.count == 0 {
		return nil
	}
	return c.append(&out, turn.Tail)
}

func (c *Compaction) chosen() chosen { return chosen{c.todo, c.places, c.ready} }

func (c *Compaction) append(r *region, at id.Offset) Effect {
	c.asked = AppendMoved{Base: at, Count: r.count, Body: r.body}
	return c.ask(c.asked, "Moved")
}

// region is the body of a batch that is being made.
type region struct {
	body  []byte
	count uint32
}

func (r *region) fits(size int, o *CompactionOptions) bool {
	return r.count == 0 || int(r.count) < o.Records && len(r.body)+size <= o.Bytes
}

func (r *region) add(encode Encoder, e Entry) {
	from := len(r.body)
	r.body = encode(append(r.body, 0, 0, 0, 0), e)
	be.PutUint32(r.body[from:], uint32(len(r.body)-from-recordOverhead))
	r.count++
}
