package segment

import (
	"math"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

const (
	// BatchHeaderSize is the length of a batch header, in bytes. Publisher and body follow it.
	BatchHeaderSize = 72
	// MaxBody bounds the body of a batch, as stored and as written, in bytes.
	MaxBody = 64 << 20
	// MaxPublisher bounds the name of a publisher, in bytes: its length is one byte.
	MaxPublisher = math.MaxUint8
)

// compressed is the only flag of a batch.
const compressed = 0x01

// BatchHeader is what a segment says about one batch. Checksums are unsalted here: the codec salts them.
//
//	 0 u32 magic | 4 u32 header checksum over (log, 8..72) | 8 u32 stored body length | 12 u32 checksum of (publisher, stored body), salted
//	16 u64 base | 24 u32 count | 28 u8 kind | 29 u8 flags, bit 0: zstd | 30 u8 publisher length | 31 u8 reserved 0
//	32 u64 generation | 40 u64 appended, micros | 48 u64 producer id | 56 u64 sequence | 64 u32 body length | 68 u32 body checksum, salted
//
// Two replicas hold the same batch if and only if Base, Count, Generation and RawSum are equal.
type BatchHeader struct {
	Base         id.Offset
	Count        uint32 // >= 1
	Generation   id.Generation
	Kind         batch.Kind
	AppendMicros uint64
	ProducerID   uint64
	Sequence     uint64

	PublisherLength uint8
	Compressed      bool   // the stored body is one zstd frame
	StoredLength    uint32 // body as stored, bytes
	StoredSum       uint32 // Sum of publisher and stored body
	RawLength       uint32 // body as written by the shard, bytes
	RawSum          uint32 // Sum of that body
}

// Describe fills the header of a batch that is stored as it is. rawSum is Sum(b.Body): whoever built the batch has it.
// It panics when publisher or body are longer than MaxPublisher and MaxBody, which the claim has refused.
func Describe(b *batch.Batch, rawSum uint32) BatchHeader {
	if len(b.Publisher) > MaxPublisher || len(b.Body) > MaxBody || b.Count == 0 {
		panic("segment: a batch that cannot be stored was claimed")
	}
	stored := rawSum
	if b.Publisher != "" {
		stored = Extend(Sum([]byte(b.Publisher)), b.Body)
	}
	return BatchHeader{
		Base: b.Base, Count: b.Count, Generation: b.Generation, Kind: b.Kind, AppendMicros: b.AppendMicros, ProducerID: b.ProducerID, Sequence: b.Sequence,
		PublisherLength: uint8(len(b.Publisher)), StoredLength: uint32(len(b.Body)), StoredSum: stored, RawLength: uint32(len(b.Body)), RawSum: rawSum,
	}
}

// Size is the length of the whole batch in the segment, in bytes: header, publisher and stored body.
func (h *BatchHeader) Size() int64 {
	return BatchHeaderSize + int64(h.PublisherLength) + int64(h.StoredLength)
}

// End is the offset after the batch's last record.
func (h *BatchHeader) End() id.Offset { return h.Base.Add(uint64(h.Count)) }

// Same reports whether two replicas hold the same batch.
func (h *BatchHeader) Same(o *BatchHeader) bool {
	return h.Base == o.Base && h.Count == o.Count && h.Generation == o.Generation && h.RawSum == o.RawSum
}

// AppendBatchHeader appends the BatchHeaderSize bytes of h to dst.
func AppendBatchHeader(dst []byte, salt Salt, h *BatchHeader) []byte {
	start := len(dst)
	dst = be.AppendUint32(dst, batchMagic)
	dst = be.AppendUint32(dst, 0) // the checksum, below
	dst = be.AppendUint32(dst, h.StoredLength)
	dst = be.AppendUint32(dst, salt.Apply(h.StoredSum))
	dst = be.AppendUint64(dst, uint64(h.Base))
	dst = be.AppendUint32(dst, h.Count)
	flags := byte(0)
	if h.Compressed {
		flags = compressed
	}
	dst = append(dst, byte(h.Kind), flags, h.PublisherLength, 0)
	dst = be.AppendUint64(dst, uint64(h.Generation))
	dst = be.AppendUint64(dst, h.AppendMicros)
	dst = be.AppendUint64(dst, h.ProducerID)
	dst = be.AppendUint64(dst, h.Sequence)
	dst = be.AppendUint32(dst, h.RawLength)
	dst = be.AppendUint32(dst, salt.Apply(h.RawSum))
	be.PutUint32(dst[start+4:], salt.over(dst[start+8:]))
	return dst
}

// DecodeBatchHeader reads the first BatchHeaderSize bytes of a batch. The checksum comes first: no other field is looked at before
// it fits. Errors are *CorruptionError, in the order of the checks: Truncated, BatchMagic, BatchHeaderChecksum, BatchFlags,
// BatchKind, BatchTooLarge, BatchFields.
func DecodeBatchHeader(b []byte, salt Salt) (BatchHeader, error) {
	if len(b) < BatchHeaderSize {
		return BatchHeader{}, short(BatchHeaderSize, len(b))
	}
	if m := be.Uint32(b); m != batchMagic {
		return BatchHeader{}, &CorruptionError{Kind: BatchMagic, Expected: batchMagic, Found: uint64(m)}
	}
	if want, found := be.Uint32(b[4:]), salt.over(b[8:BatchHeaderSize]); want != found {
		return BatchHeader{}, &CorruptionError{Kind: BatchHeaderChecksum, Expected: uint64(want), Found: uint64(found)}
	}
	h := BatchHeader{
		StoredLength: be.Uint32(b[8:]), StoredSum: salt.Apply(be.Uint32(b[12:])), Base: id.Offset(be.Uint64(b[16:])), Count: be.Uint32(b[24:]),
		Kind: batch.Kind(b[28]), Compressed: b[29]&compressed != 0, PublisherLength: b[30], Generation: id.Generation(be.Uint64(b[32:])),
		AppendMicros: be.Uint64(b[40:]), ProducerID: be.Uint64(b[48:]), Sequence: be.Uint64(b[56:]),
		RawLength: be.Uint32(b[64:]), RawSum: salt.Apply(be.Uint32(b[68:])),
	}
	if b[29]&^compressed != 0 || b[31] != 0 {
		return BatchHeader{}, &CorruptionError{Kind: BatchFlags, Found: uint64(b[29])<<8 | uint64(b[31])}
	}
	if err := h.check(); err != nil {
		return BatchHeader{}, err
	}
	return h, nil
}

// check judges fields that a checksum vouches for.
func (h *BatchHeader) check() error {
	if h.Kind < batch.Records || h.Kind > batch.Checkpoint {
		return &CorruptionError{Kind: BatchKind, Expected: uint64(batch.Checkpoint), Found: uint64(h.Kind)}
	}
	if longest := max(h.StoredLength, h.RawLength); longest > MaxBody {
		return &CorruptionError{Kind: BatchTooLarge, Expected: MaxBody, Found: uint64(longest)}
	}
	wrong := func(why string) error { return &CorruptionError{Kind: BatchFields, Why: why} }
	switch {
	case h.Count == 0:
		return wrong("a batch without records")
	case uint64(h.Base) > math.MaxUint64-uint64(h.Count):
		return wrong("offsets that run past the largest one")
	case !h.Compressed && h.RawLength != h.StoredLength:
		return wrong("a body that is not compressed has two lengths")
	case !h.Compressed && h.PublisherLength == 0 && h.RawSum != h.StoredSum:
		return wrong("a body that is not compressed has two checksums")
	}
	return nil
}
