package client

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

// refusalOf turns an answer that is no success into an error. An answer that has no place there is a *ProtocolError.
func refusalOf(op string, m wire.Message) error {
	switch m := m.(type) {
	case *wire.ErrorAnswer:
		return brokerError(op, m.Refusal())
	case *wire.PublishError:
		return brokerError(op, m.Refusal())
	case *wire.NotLeader:
		return &NotLeaderError{Op: op, NodeID: m.NodeID, Addr: m.Addr.V, Generation: m.Generation}
	case *wire.SubscribeCursorError:
		return &CursorError{Op: op, Reason: m.Reason, Requested: m.Requested, Available: m.Available}
	case *wire.PublishRefused:
		return refusedError(op, m)
	case *wire.Unsupported:
		return &UnsupportedError{Op: op, Feature: fmt.Sprintf("%q", m.RequestType)}
	}
	return &ProtocolError{Op: op, What: fmt.Sprintf("answered %q", m.MessageType())}
}

// coded reports whether a refusal came with a code: then the stream it came on goes on.
func coded(f wire.Failure) bool { return f.Code.Set }
