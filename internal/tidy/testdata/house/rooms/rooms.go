// Package rooms has actors, tidy and untidy ones.
package rooms

import "example.com/house/actors"

// Lights is a cell.
const Lights actors.CellKind = 1

// Message is what a Room accepts.
//
//sumtype:decl
type Message interface{ message() }

// Enter, Leave and tick are the messages of a Room.
type (
	Enter struct{}
	Leave struct{}
	tick  struct{}
)

func (*Enter) message() {}
func (Leave) message()  {}
func (tick) message()   {}

// Room is tidy.
//
//	path     rooms/<n>, child of House      lanes    data 4 items, cells
//	blocks   never                          failure  stop
//
//	in              from       then
//	*Enter, Leave   a guest    the light goes on,
//	                           or off
//	Lights          House      the light goes on
//	Terminated      a lamp     another one
type Room struct{}

// Receive is one turn.
func (*Room) Receive(*actors.Turn) {}

// wrapped embeds an actor and is none itself.
type wrapped struct{ actors.Actor }

// Bare has no table.
type Bare struct{} // want actors: actor Bare lacks path, lanes, blocks, failure, the heading

// Receive is one turn.
func (Bare) Receive(*actors.Turn) {}

// Wrong has a table that tells something else.
//
//	path     wrong      lanes    data
//	blocks   never      failure  stop
//
//	in       from     then
//	Enter    guests   nothing
//	Shout    guests   nothing
type Wrong struct{} // want actors: accepts Leave, which its table does not have | actors: "Shout", which it does not accept

// Receive is one turn.
func (*Wrong) Receive(*actors.Turn) {}

// Lost is never spawned.
//
//	path     lost       lanes    data
//	blocks   never      failure  stop
//
//	in       from     then
//	Enter    guests   nothing
type Lost struct{} // want actors: no Spec makes actor Lost

// Receive is one turn.
func (*Lost) Receive(*actors.Turn) {}

// Single accepts one type.
//
//	path     single     lanes    data
//	blocks   never      failure  stop
//
//	in       from     then
//	Wake     itself   nothing
type Single struct{} // want actors: accepts Enter, which its table does not have

// Receive is one turn.
func (*Single) Receive(*actors.Turn) {}
