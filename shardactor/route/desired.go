package route

import (
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Assignment is what this node is to host of one resource: all of its shards, at one generation. It comes from the
// control plane and is never changed once made.
type Assignment struct {
	Name        Name
	Incarnation id.Incarnation
	Generation  id.Generation
	Shards      uint32
	Routing     wire.Routing
	Durable     bool
}

// Desired is everything this node is to host, in the order of the names. Version grows with every change.
type Desired struct {
	Version     uint64
	Assignments []Assignment
}
