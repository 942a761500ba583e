package keyed

import (
	"encoding/binary"
	"fmt"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

const (
	recordOverhead = 4 // the length in front of each record of a body
	// storedBatch is what a batch takes in its log's files beside its body, in bytes.
	storedBatch = 72
)

// RecordAt returns the payload of one record of a batch of kind Records, which holds at: that is where the value of a cold entry with that
// Offset is. It is a part of the batch's body. The error is a *BodyError.
func RecordAt(b *batch.Batch, at id.Offset) ([]byte, error) {
	if b.Kind != batch.Records || at < b.Base || at >= b.End() {
		return nil, &BodyError{What: fmt.Sprintf("of kind %s holds %s to %s, and not the record at %s", b.Kind, b.Base, b.End(), at)}
	}
	body := b.Body
	for o := b.Base; ; o = o.Add(1) {
		payload, rest, err := cutRecord(body, o.Since(b.Base), b.Count)
		if err != nil || o == at {
			return payload, err
		}
		body = rest
	}
}

// cutRecord cuts record n of count off a body.
func cutRecord(body []byte, n uint64, count uint32) (payload, rest []byte, err error) {
	if len(body) < recordOverhead {
		return nil, nil, &BodyError{What: fmt.Sprintf("ends before record %d of %d", n, count)}
	}
	size := uint64(binary.BigEndian.Uint32(body))
	if body = body[recordOverhead:]; size > uint64(len(body)) {
		return nil, nil, &BodyError{What: fmt.Sprintf("has %d bytes left for record %d of %d bytes", len(body), n, size)}
	}
	return body[:size:size], body[size:], nil
}
