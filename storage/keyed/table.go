package keyed

// The table maps the tags of keys to refs. It is a directory of segments: the top bits of a tag choose the segment, its low bits the first
// slot to look at there. A full segment is split in two, by one more bit; so nothing is ever copied but one segment.
//
//  1. a slot is 0 or a tag and a ref; a ref stands in one slot;
//  2. between the first slot of a tag and the slot where it stands no slot is 0;
//  3. a segment holds the tags of one range, and stands in all places of the directory that begin like it;
//  4. a segment of less than segmentSlots is the only one.
const (
	segmentSlots = 1024 // 8 KiB: split in some microseconds
	fewestSlots  = 16
	deepest      = 20 // bits of the directory; the tag's others tell keys of a segment apart
)

type table struct {
	dir   []*segment
	depth uint8 // the directory has 1<<depth places
	count int
	bytes int64 // of slots
}

type segment struct {
	slots []uint64 // a power of two of them
	used  int
	depth uint8  // how many top bits its tags share
	first uint32 // the lowest tag of its range
}

func slotOf(tag uint32, r ref) uint64 { return uint64(tag)<<32 | uint64(r) }
func tagOf(slot uint64) uint32        { return uint32(slot >> 32) }
func refOf(slot uint64) ref           { return ref(slot) }

func (s *segment) home(tag uint32) int { return int(tag) & (len(s.slots) - 1) }
func (s *segment) next(i int) int      { return (i + 1) & (len(s.slots) - 1) }

// last is the highest tag of the segment's range.
func (s *segment) last() uint32 { return s.first | ^uint32(0)>>s.depth }

// of is the segment for a tag; nil while the table is empty.
func (t *table) of(tag uint32) *segment {
	if len(t.dir) == 0 {
		return nil
	}
	return t.dir[tag>>(32-t.depth)]
}

// insert adds a ref that is not there.
func (t *table) insert(tag uint32, r ref) {
	if len(t.dir) == 0 {
		t.dir = []*segment{t.segment(fewestSlots, 0, 0)}
	}
	s := t.of(tag)
	for (s.used+1)*8 > len(s.slots)*7 {
		if len(s.slots) >= segmentSlots && s.depth < deepest {
			t.split(s)
		} else {
			t.resize(s, 2*len(s.slots))
		}
		s = t.of(tag)
	}
	s.add(slotOf(tag, r))
	t.count++
}

func (s *segment) add(slot uint64) {
	i := s.home(tagOf(slot))
	for s.slots[i] != 0 {
		i = s.next(i)
	}
	s.slots[i] = slot
	s.used++
}

// find is where a ref stands; -1 if it is not in the table.
func (s *segment) find(tag uint32, r ref) int {
	want := slotOf(tag, r)
	for i := s.home(tag); ; i = s.next(i) {
		switch s.slots[i] {
		case want:
			return i
		case 0:
			return -1
		}
	}
}

// remove empties slot i and moves up what would not be found behind it.
func (t *table) remove(s *segment, i int) {
	mask := len(s.slots) - 1
	for j := s.next(i); s.slots[j] != 0; j = s.next(j) {
		if (j-s.home(tagOf(s.slots[j])))&mask >= (j-i)&mask {
			s.slots[i], i = s.slots[j], j
		}
	}
	s.slots[i] = 0
	s.used--
	t.count--
	if s.used*8 < len(s.slots) {
		t.shrink(s)
	}
}

func (t *table) segment(slots int, depth uint8, first uint32) *segment {
	t.bytes += int64(slots) * 8
	return &segment{slots: make([]uint64, slots), depth: depth, first: first}
}

func (t *table) resize(s *segment, slots int) {
	old := s.slots
	t.bytes += int64(slots-len(old)) * 8
	s.slots, s.used = make([]uint64, slots), 0
	for _, slot := range old {
		if slot != 0 {
			s.add(slot)
		}
	}
}

func (t *table) split(s *segment) {
	if s.depth == t.depth {
		dir := make([]*segment, 2*len(t.dir))
		for i := range dir {
			dir[i] = t.dir[i/2]
		}
		t.dir, t.depth = dir, t.depth+1
	}
	bit := uint32(1) << (31 - s.depth)
	low := t.segment(len(s.slots), s.depth+1, s.first)
	high := t.segment(len(s.slots), s.depth+1, s.first|bit)
	for _, slot := range s.slots {
		switch {
		case slot == 0:
		case tagOf(slot)&bit == 0:
			low.add(slot)
		default:
			high.add(slot)
		}
	}
	t.bytes -= int64(len(s.slots)) * 8
	t.put(low)
	t.put(high)
}

// put enters a segment in all its places of the directory.
func (t *table) put(s *segment) {
	from := s.first >> (32 - t.depth)
	for i := uint32(0); i < 1<<(t.depth-s.depth); i++ {
		t.dir[from+i] = s
	}
}

// shrink gives memory back: by a smaller segment if it is the only one, else by joining it with the other half of the range that both were
// split from.
func (t *table) shrink(s *segment) {
	if t.count == 0 {
		*t = table{}
		return
	}
	if s.depth == 0 {
		if len(s.slots) > fewestSlots {
			t.resize(s, len(s.slots)/2)
		}
		return
	}
	bit := uint32(1) << (32 - s.depth)
	other := t.of(s.first ^ bit)
	if other.depth != s.depth || (s.used+other.used)*2 > segmentSlots {
		return
	}
	joined := t.segment(segmentSlots, s.depth-1, s.first&^bit)
	for _, from := range []*segment{s, other} {
		for _, slot := range from.slots {
			if slot != 0 {
				joined.add(slot)
			}
		}
		t.bytes -= int64(len(from.slots)) * 8
	}
	if joined.depth == 0 {
		t.dir, t.depth = []*segment{joined}, 0
		return
	}
	t.put(joined)
}
