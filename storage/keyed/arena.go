package keyed

// A ref is the place of a block: the number of its chunk and its position there in units. 0 is never one.
type ref uint32

const (
	unit       = 8
	chunkBytes = 1 << 20 // a multiple of the largest block many times over
	chunkBits  = 17      // of a ref: chunkBytes / unit positions
	firstChunk = 1 << 10 // of an index with a few keys; it doubles up to chunkBytes
	chunksMost = 1 << (32 - chunkBits)

	// ArenaMax is how many live bytes one index holds at most; Admit refuses more. Refs reach twice as far, and garbage stays under a
	// third.
	ArenaMax = chunksMost * chunkBytes / 2
)

// arena holds blocks in chunks. It hands out memory at the head; blocks that are given back are garbage until their chunk is emptied.
//
//  1. live is the sum of the sizes of blocks that are not given back, for each chunk and for all;
//  2. a chunk without live blocks is freed, unless it is the head;
//  3. chunk 0 does not exist, so that no ref is 0.
type arena struct {
	chunks   []chunk
	free     []uint32 // numbers of chunks that were freed
	head     uint32   // 0: none
	live     int64
	used     int64 // bytes handed out and not freed, garbage included
	capacity int64 // bytes of memory

	victim  uint32 // the chunk that is being emptied; 0: none
	emptied int    // up to here
}

type chunk struct {
	b    []byte // what is handed out; its capacity is the chunk's
	live int
}

// at is the block of a ref.
func (a *arena) at(r ref) block {
	return block(a.chunks[r>>chunkBits].b[int(r&(1<<chunkBits-1))*unit:])
}

// alloc hands out size bytes, a multiple of unit, and their ref. They are zero.
func (a *arena) alloc(size int) (ref, block) {
	if a.head == 0 || len(a.chunks[a.head].b)+size > chunkBytes {
		a.open(size)
	}
	c := &a.chunks[a.head]
	from := len(c.b)
	if from+size > cap(c.b) {
		a.grow(c, from+size)
	}
	c.b = c.b[:from+size]
	c.live += size
	a.live += int64(size)
	a.used += int64(size)
	return ref(a.head<<chunkBits | uint32(from/unit)), block(c.b[from:])
}

// open begins another chunk. What it begins with follows what is live, so that a small index that is written to for ever stays small.
func (a *arena) open(size int) {
	if old := a.head; old != 0 {
		a.head = 0
		a.freeIfEmpty(old)
	}
	if len(a.chunks) == 0 {
		a.chunks = make([]chunk, 1)
	}
	n := uint32(len(a.chunks))
	if last := len(a.free) - 1; last >= 0 {
		n, a.free = a.free[last], a.free[:last]
	} else if n == chunksMost {
		panic("keyed: an index of more than 32 GiB: keys were written that Admit did not let in")
	} else {
		a.chunks = append(a.chunks, chunk{})
	}
	begin := firstChunk
	for begin < chunkBytes && (int64(begin) < a.live/8 || begin < size) {
		begin *= 2
	}
	a.chunks[n] = chunk{b: make([]byte, 0, begin)}
	a.capacity += int64(begin)
	a.head = n
}

func (a *arena) grow(c *chunk, need int) {
	size := cap(c.b)
	for size < need {
		size *= 2
	}
	b := make([]byte, len(c.b), size)
	copy(b, c.b)
	a.capacity += int64(size - cap(c.b))
	c.b = b
}

// release gives a block back. It stays as it is until its chunk is freed.
func (a *arena) release(r ref, size int) {
	n := uint32(r >> chunkBits)
	a.chunks[n].live -= size
	a.live -= int64(size)
	a.freeIfEmpty(n)
}

func (a *arena) freeIfEmpty(n uint32) {
	c := &a.chunks[n]
	if c.live > 0 || n == a.head || c.b == nil {
		return
	}
	a.used -= int64(len(c.b))
	a.capacity -= int64(cap(c.b))
	c.b = nil
	a.free = append(a.free, n)
	if n == a.victim {
		a.victim, a.emptied = 0, 0
	}
}

// garbage is how many bytes were handed out and given back.
func (a *arena) garbage() int64 { return a.used - a.live }

// choose makes the chunk with the most garbage the victim. If that is the head, another one is begun with the next block.
func (a *arena) choose() {
	n, garbage := uint32(0), 0
	for i := 1; i < len(a.chunks); i++ {
		if c := &a.chunks[i]; len(c.b)-c.live > garbage {
			n, garbage = uint32(i), len(c.b)-c.live
		}
	}
	a.victim, a.emptied = n, 0
	if n != 0 && n == a.head {
		a.head = 0
		a.freeIfEmpty(n)
	}
}
