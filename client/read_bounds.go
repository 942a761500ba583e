package client

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Bounds returns the offset of the oldest record that a shard of a durable stream keeps, and the one that the next record gets, which
// is never below it. They are of two moments, in this order: retention and publishers go on between them. It asks for two offsets that the
// log cannot have, whose refusals name those that it has.
func (c *Client) Bounds(ctx context.Context, namespace, stream string, shard uint32) (oldest, next id.Offset, err error) {
	var cursor *CursorError
	first := wire.StreamRead{Namespace: namespace, Stream: stream, Shard: shard, End: wire.Some(id.Offset(0))}
	if _, err = c.readPage(ctx, &first); err != nil {
		if !errors.Is(err, ErrTooOld) || !errors.As(err, &cursor) {
			return 0, 0, err
		}
		oldest = cursor.Available
	}
	far := wire.StreamRead{Namespace: namespace, Stream: stream, Shard: shard, From: math.MaxUint64}
	switch _, err = c.readPage(ctx, &far); {
	case errors.Is(err, ErrInFuture) && errors.As(err, &cursor):
		return oldest, cursor.Available, nil
	case err != nil:
		return 0, 0, err
	}
	return 0, 0, &ProtocolError{Op: fmt.Sprintf("ask bounds of %s/%s shard %d", namespace, stream, shard), What: "read from the last offset of all"}
}
