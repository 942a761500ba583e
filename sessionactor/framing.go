package sessionactor

import (
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// frame makes the event frames of a batch where its bytes lie: the header goes into the room in front of the region. A
// body that is too large for one frame is cut at record boundaries, with a header of its own for each part; its bytes stay
// where they are. This is done once, for all subscribers.
func (d *Delivery) frame(b *batch.Batch, framed []byte) {
	b.Body = framed[sessioncore.RegionHeadroom:]
	if int64(b.Count) <= int64(d.MaxEvents) && len(b.Body) <= d.MaxBytes || b.Count == 1 {
		wire.PutSharedEventHeader(framed[:sessioncore.RegionHeadroom], b.Count, len(b.Body))
		b.Framed = framed
		return
	}
	for rest := wire.Region(b.Body); len(rest) > 0; {
		var part wire.Region
		var count uint32
		part, count, rest = rest.Cut(d.MaxEvents, d.MaxBytes)
		header := make([]byte, sessioncore.RegionHeadroom)
		wire.PutSharedEventHeader(header, count, len(part))
		b.Cut = append(b.Cut, header, part)
	}
}
