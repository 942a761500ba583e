// Package annex has an actor that accepts the messages of another package.
package annex

import (
	"example.com/house/actors"
	"example.com/house/rooms"
)

// Annex takes what a Room takes.
//
//	path     annex      lanes    data, cells
//	blocks   never      failure  stop
//
//	in             from     then
//	rooms.Enter    guests   nothing
//	Leave          guests   nothing
//	rooms.Lights   House    nothing
//	rooms.House    House    nothing
//	walls.Lights   House    nothing
type Annex struct{} // want actors: has "rooms.House", which it does not | actors: has "walls.Lights", which it does not

// Receive is one turn.
func (*Annex) Receive(*actors.Turn) {}

// Start spawns it.
func Start() {
	actors.Spawn(actors.Spec[rooms.Message]{New: func() actors.Actor { return &Annex{} }})
	actors.Spawn(actors.Spec[any]{Name: "annex"}) // want actors: does not show which actor it makes | actors: accepts any, which is no named type
}
