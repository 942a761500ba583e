package keyed

import (
	"encoding/binary"

	"github.com/felixd/felixd/wire/id"
)

// A block is one entry in the arena:
//
//	0 u32 key length | 4 u32 value length, its top bit: cold | 8 u64 version | 16 u64 offset | 24 u64 expires
//	32 u32 place in the expiry heap + 1, 0 = not there | 36 u32 bytes in the log | 40 key | value, unless it is cold
//
// It is never seen outside of this process: the order of bytes is the processor's usual one, and a snapshot has a form of its own.
const (
	blockHeader = 40
	coldBit     = 1 << 31

	// KeyMax is the longest key in bytes: that of a cache key on the wire, with room for the prefix that groups put in front.
	KeyMax = 65_535 + 4096
	// ValueMax is the longest value in bytes, inline or not: far above any frame.
	ValueMax = 1<<30 - 1
	// inlineLimit bounds Options.InlineMax, so that a block fits a chunk with much to spare.
	inlineLimit = 64 << 10
)

var le = binary.LittleEndian

type block []byte // from the block's first byte to the end of its chunk

func (b block) keyLen() int       { return int(le.Uint32(b)) }
func (b block) valueLen() int     { return int(le.Uint32(b[4:]) &^ coldBit) }
func (b block) cold() bool        { return le.Uint32(b[4:])&coldBit != 0 }
func (b block) version() uint64   { return le.Uint64(b[8:]) }
func (b block) offset() uint64    { return le.Uint64(b[16:]) }
func (b block) expires() uint64   { return le.Uint64(b[24:]) }
func (b block) place() uint32     { return le.Uint32(b[32:]) }
func (b block) setPlace(p uint32) { le.PutUint32(b[32:], p) }
func (b block) logBytes() uint32  { return le.Uint32(b[36:]) }
func (b block) key() []byte       { return b[blockHeader : blockHeader+b.keyLen()] }

func (b block) value() []byte {
	if b.cold() {
		return nil
	}
	from := blockHeader + b.keyLen()
	return b[from : from+b.valueLen()]
}

// size is the block's length in the arena.
func (b block) size() int {
	inline := b.valueLen()
	if b.cold() {
		inline = 0
	}
	return blockSize(b.keyLen(), inline)
}

func blockSize(key, inline int) int {
	return (blockHeader + key + inline + unit - 1) &^ (unit - 1)
}

// write fills a block. The place in the heap is left as it is.
func (b block) write(e *Entry) {
	le.PutUint32(b, uint32(len(e.Key)))
	value := uint32(e.ValueBytes)
	if e.Cold {
		value |= coldBit
	}
	le.PutUint32(b[4:], value)
	le.PutUint64(b[8:], uint64(e.Version))
	le.PutUint64(b[16:], uint64(e.Offset))
	le.PutUint64(b[24:], e.ExpiresAtMillis)
	le.PutUint32(b[36:], uint32(e.LogBytes))
	copy(b[blockHeader:], e.Key)
	if !e.Cold {
		copy(b[blockHeader+len(e.Key):], e.Value)
	}
}

// entry is what a block says. Key and Value are parts of it.
func (b block) entry() Entry {
	return Entry{
		Key: b.key(), Value: b.value(), Cold: b.cold(), ValueBytes: b.valueLen(), Version: id.Offset(b.version()), Offset: id.Offset(b.offset()),
		ExpiresAtMillis: b.expires(), LogBytes: int(b.logBytes()),
	}
}
