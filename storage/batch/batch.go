// Package batch is the unit a shard's log stores, ships and serves: one publish is one batch, and its body is the very
// region that travels in an event frame. It is pure data, so that both the cores that decide about batches and the
// storage that keeps them can name it.
package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/felixd/felixd/wire/id"
)

// Kind says what a batch means to the log's readers.
type Kind uint8

const (
	// Records carries what clients published.
	Records Kind = iota + 1
	// GenerationStart marks where a new leader's generation begins. Readers skip it.
	GenerationStart
	// Commit carries one event together with changes of entity state.
	Commit
	// Moved marks the hand-over of a shard to another replica. Readers skip it.
	Moved
	// Checkpoint carries state that lets a reader start later than at the beginning. Readers skip it.
	Checkpoint
)

var kindNames = [...]string{Records: "records", GenerationStart: "generation_start", Commit: "commit", Moved: "moved", Checkpoint: "checkpoint"}

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind_%d", uint8(k))
}

// Visible reports whether clients see the records of such a batch.
func (k Kind) Visible() bool { return k == Records || k == Commit }

// Batch is one stored unit.
//
// A batch is written by three hands in turn: the session fills what the client sent, the shard's core fills Base,
// Generation and AppendMicros when it claims the batch's offsets, and from then on nobody changes it. Guarantees of a
// claimed batch:
//
//  1. Count >= 1 and the offsets Base .. Base+Count-1 belong to it alone;
//  2. Generation is the one under which they were claimed;
//  3. Body holds Count records as (u32 length, payload) and is never written again: readers and subscribers share it. In a Commit, changes
//     of state follow behind its one record; other kinds that clients do not see have a body of their own form.
type Batch struct {
	Base         id.Offset
	Count        uint32
	Generation   id.Generation
	Kind         Kind
	AppendMicros uint64 // wall clock at the claim, microseconds since the Unix epoch
	ProducerID   uint64 // 0 = not an idempotent publish
	Sequence     uint64
	Publisher    string // principal that published; empty unless publishers are recorded

	// Body is the event region. It belongs to the batch.
	Body []byte
	// Sum is the CRC-32C of Body, if Summed says that it was computed: by whoever made the batch, or by the log that stores it. It tells
	// two contents of one numbered publish apart.
	Sum    uint32
	Summed bool
	// PayloadBytes is the sum of the payload lengths in Region, without framing.
	PayloadBytes int
	// Framed, when not nil, is Region with a complete frame header in front of it: the bytes that most readers are sent,
	// ready made. Framed[len(Framed)-len(Region()):] is Region().
	Framed []byte
	// Cut, when not nil, is the same for a body that is too large for one frame: headers and parts of Body in turn, to be
	// sent one after the other.
	Cut [][]byte
}

// End is the offset after the batch's last record.
func (b *Batch) End() id.Offset { return b.Base.Add(uint64(b.Count)) }

// Size is what the batch costs in memory budgets: its bytes and an allowance for the structure around them.
func (b *Batch) Size() int {
	body := len(b.Body)
	if len(b.Framed) > body {
		body = len(b.Framed)
	}
	return body + Overhead
}

// Overhead is the allowance per batch for its structure and its place in a ring or index, in bytes.
const Overhead = 256

// Region is what clients see of the body: Count records as (u32 length, payload). It is shared with Body. A body that is cut off inside a
// commit's event is a broken invariant of whoever made or read the batch.
func (b *Batch) Region() []byte {
	if b.Kind != Commit {
		return b.Body
	}
	return b.Body[:recordOverhead+int(binary.BigEndian.Uint32(b.Body))]
}

// From returns the part of a batch that begins at offset o: the batch itself if it begins there or later, or has no records that could be
// told apart. o lies before its end. The bytes are shared; a body without them is a broken invariant of whoever made or read the batch.
func (b *Batch) From(o id.Offset) *Batch {
	if b.Base >= o || b.Kind != Records {
		return b
	}
	part := *b
	for ; part.Base < o; part.Base, part.Count = part.Base.Add(1), part.Count-1 {
		n := int(binary.BigEndian.Uint32(part.Body))
		part.Body = part.Body[recordOverhead+n:]
		part.PayloadBytes -= n
	}
	part.Framed, part.Cut, part.Sum, part.Summed = nil, nil, 0, false
	return &part
}

// recordOverhead is the length in front of each record of a region, in bytes.
const recordOverhead = 4

// castagnoli is the polynomial of CRC-32C, RFC 3720 appendix B.4.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC-32C of a body, see Sum.
func Checksum(body []byte) uint32 { return crc32.Checksum(body, castagnoli) }

// Summarize computes Sum unless it is there.
func (b *Batch) Summarize() uint32 {
	if !b.Summed {
		b.Sum, b.Summed = Checksum(b.Body), true
	}
	return b.Sum
}
