package crashtest

import (
	"errors"
	"io"

	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/wire/id"
)

// streamName is the name of the streamed snapshot.
const streamName = "state"

// stream saves a streamed snapshot of what is durable, or of what is written and not durable yet, while the log goes on and is cut now and then.
func (c *campaign) stream() {
	_, durable, tail := c.log.Bounds()
	asOf := durable
	if c.rng.IntN(2) == 0 {
		asOf = tail
	}
	body := c.model.told(asOf)
	err := c.log.SaveSnapshotFrom(streamName, func(w io.Writer) (id.Offset, error) {
		half := len(body) / 2
		if _, err := w.Write(body[:half]); err != nil {
			return 0, err
		}
		switch c.rng.IntN(6) {
		case 0, 1:
			c.append()
		case 2:
			c.append()
			c.exec.Step()
		case 3:
			c.truncate()
		}
		_, err := w.Write(body[half:])
		return asOf, err
	})
	var stale *disklog.SnapshotStaleError
	switch {
	case err == nil:
		c.model.kept = &asOf
		c.result.Streamed++
	case errors.As(err, &stale):
		c.result.Stale++
	default:
		c.maintained(err)
		c.model.kept = nil // the sync of its name may be what failed
	}
}
