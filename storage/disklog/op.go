package disklog

import (
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

type opKind uint8

const (
	opAppend opKind = iota + 1
	// The others are done alone.
	opSave
	opKeep
	opTruncate
	opReset
	opSeal
	opIdle
	opClose
)

// op is one thing that was asked of a log.
type op struct {
	kind    opKind
	seq     uint64
	batches []*batch.Batch // of an append
	size    int64          // of an append, as stored
	sum     uint32         // of the segment up to the end of the append, once it is written
	offset  id.Offset      // of a cut
	replica replicaChange  // of a save, or of a keep
	done    func(error)    // of a keep
}

// completion is the answer to an op that waits for its turn.
type completion struct {
	seq  uint64
	need uint64 // it may be given once so many bytes are synced
	err  error  // a refusal
	seal bool   // of a Seal, which drops nothing
}

// measure returns what batches take in a segment and where they end. Batches that do not continue each other break an invariant of
// whoever claimed their offsets.
func measure(batches []*batch.Batch) (size int64, end id.Offset) {
	end = batches[0].Base
	for _, b := range batches {
		if b.Base != end || b.Count == 0 {
			panic("disklog: batch at offset " + b.Base.String() + " does not continue the one before it")
		}
		end = b.End()
		size += segment.BatchHeaderSize + int64(len(b.Publisher)+len(b.Body))
	}
	return size, end
}
