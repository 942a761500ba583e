package shardcore

import (
	"encoding/binary"
	"fmt"

	"github.com/felixd/felixd/wire/id"
)

// A snapshot of Producers is:
//
//	u16 version = 1 | u32 producers | per producer, that with the oldest newest batch first:
//	    u64 id | u64 sequence of its newest batch | u8 batches | per batch, oldest first: u64 base | u32 count | u32 sum | u32 length
//
// Integers are big-endian. There is one encoding of each memory. It has no checksum: the file that carries it has.
const (
	producersVersion  = 1
	snapshotHeader    = 2 + 4
	producerHeader    = 8 + 8 + 1
	storedSize        = 8 + 4 + 4 + 4
	leastProducerSize = producerHeader + storedSize
)

// visit calls f for every producer, that with the oldest newest batch first.
func (p *Producers) visit(f func(*producer)) {
	for x := p.oldest; x != nil; x = x.newer {
		f(x)
	}
}

// Encode appends the snapshot of p to dst.
func (p *Producers) Encode(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, producersVersion)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(p.byID)))
	p.visit(func(x *producer) {
		dst = binary.BigEndian.AppendUint64(dst, x.id)
		dst = binary.BigEndian.AppendUint64(dst, x.last)
		dst = append(dst, byte(x.count))
		for i := range x.count {
			s := x.at(i)
			dst = binary.BigEndian.AppendUint64(dst, uint64(s.base))
			dst = binary.BigEndian.AppendUint32(dst, s.count)
			dst = binary.BigEndian.AppendUint32(dst, s.sum)
			dst = binary.BigEndian.AppendUint32(dst, s.length)
		}
	})
	return dst
}

// SnapshotError says why bytes are no snapshot of Producers. Whoever gets it goes without, and notes the whole log instead.
type SnapshotError struct{ What string }

func (e *SnapshotError) Error() string { return "decode producers: " + e.What }

func snapshotError(format string, args ...any) error {
	return &SnapshotError{What: fmt.Sprintf(format, args...)}
}

// DecodeProducers reads a snapshot that was taken of the log below asOf. The batches from asOf on are then to be noted. The error is a
// *SnapshotError.
func DecodeProducers(body []byte, asOf id.Offset) (*Producers, error) {
	return decodeProducers(NewProducers(), body, asOf)
}

// decodeProducers fills an empty memory.
func decodeProducers(p *Producers, body []byte, asOf id.Offset) (*Producers, error) {
	if len(body) < snapshotHeader {
		return nil, snapshotError("%d bytes are too few for a header", len(body))
	}
	if v := binary.BigEndian.Uint16(body); v != producersVersion {
		return nil, snapshotError("version %d is not known here, this is %d", v, producersVersion)
	}
	n := binary.BigEndian.Uint32(body[2:])
	if body = body[snapshotHeader:]; uint64(n) > uint64(p.max) || uint64(n)*leastProducerSize > uint64(len(body)) {
		return nil, snapshotError("%d producers in %d bytes; at most %d are kept", n, len(body), p.max)
	}
	for i := range n {
		var err error
		if body, err = p.decodeOne(body, asOf); err != nil {
			return nil, fmt.Errorf("producer %d of %d: %w", i, n, err)
		}
	}
	if len(body) > 0 {
		return nil, snapshotError("%d bytes follow the last producer", len(body))
	}
	p.end = asOf
	return p, nil
}

// decodeOne reads the next producer and returns what follows it. p.end is the end of the newest batch read.
func (p *Producers) decodeOne(body []byte, asOf id.Offset) (rest []byte, err error) {
	if len(body) < producerHeader {
		return nil, snapshotError("%d bytes are too few for its header", len(body))
	}
	name, last, count := binary.BigEndian.Uint64(body), binary.BigEndian.Uint64(body[8:]), int(body[16])
	body = body[producerHeader:]
	switch {
	case name == 0 || p.byID[name] != nil:
		return nil, snapshotError("id %d is not a producer's, or comes twice", name)
	case count == 0 || count > p.each || uint64(count-1) > last:
		return nil, snapshotError("%d batches up to sequence %d; 1 to %d are kept", count, last, p.each)
	case len(body) < count*storedSize:
		return nil, snapshotError("%d bytes are too few for %d batches", len(body), count)
	}
	x, end := p.enter(name), id.Offset(0)
	x.last = last
	for range count {
		s := stored{
			base:  id.Offset(binary.BigEndian.Uint64(body)),
			count: binary.BigEndian.Uint32(body[8:]), sum: binary.BigEndian.Uint32(body[12:]), length: binary.BigEndian.Uint32(body[16:]),
		}
		body = body[storedSize:]
		if s.base < end || s.count == 0 || s.base > asOf || uint64(s.count) > uint64(asOf-s.base) {
			return nil, snapshotError("a batch of %d records at %d, after %d and in a log below %d", s.count, s.base, end, asOf)
		}
		x.push(s, p.each)
		end = s.end()
	}
	if x.at(count-1).base < p.end {
		return nil, snapshotError("its newest batch ends at %d, before that of the one in front of it at %d", end, p.end)
	}
	p.end = end
	p.link(x)
	return body, nil
}
