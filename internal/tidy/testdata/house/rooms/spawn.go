package rooms

import "example.com/house/actors"

// loose is not marked.
type loose interface{ loose() }

func newRoom() *Room { return &Room{} }

func spawnAll(r *Room, w *Wrong) {
	actors.Spawn(actors.Spec[Message]{Name: "room", New: func() actors.Actor { return wrapped{newRoom()} }})
	spec := actors.Spec[Message]{New: newWrong}
	actors.Spawn(spec)
	actors.Spawn(actors.Spec[*Enter]{New: func() actors.Actor { return &Single{} }})
	actors.Spawn(actors.Spec[Message]{New: func() actors.Actor { return r }})     // want actors: does not show which actor it makes
	actors.Spawn(actors.Spec[loose]{New: func() actors.Actor { return Bare{} }})  // want actors: accepts loose, which is not marked
	actors.Spawn(actors.Spec[func()]{New: func() actors.Actor { return Bare{} }}) // want actors: accepts func(), which is no named type
}

func newWrong() actors.Actor { return &Wrong{} }
