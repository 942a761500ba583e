package disklog

import (
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/felixd/felixd/storage/segment"
)

// unpacker unpacks bodies. It is made when the first packed one is read.
type unpacker struct {
	once sync.Once
	zstd *zstd.Decoder
	err  error
}

// unpackStart is what is allocated for a body at first, whatever length its header declares.
const unpackStart = 1 << 20

// unpack unpacks a stored body and verifies what comes out.
func (s *Store) unpack(stored []byte, h *segment.BatchHeader) ([]byte, error) {
	u := &s.unpacker
	u.once.Do(func() {
		u.zstd, u.err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(segment.MaxBody))
	})
	if u.err != nil {
		return nil, u.err
	}
	body, err := u.zstd.DecodeAll(stored, make([]byte, 0, min(int(h.RawLength), unpackStart)))
	if err != nil {
		return nil, &CorruptionError{Kind: segment.BodyChecksum, Expected: uint64(h.RawSum), Why: "it cannot be unpacked: " + err.Error()}
	}
	if sum := segment.Sum(body); sum != h.RawSum || len(body) != int(h.RawLength) {
		return nil, &CorruptionError{Kind: segment.BodyChecksum, Expected: uint64(h.RawSum), Found: uint64(sum)}
	}
	return body, nil
}
