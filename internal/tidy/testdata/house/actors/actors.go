// Package actors has the shape of an actor runtime.
package actors

type (
	// Turn is one activation.
	Turn struct{}
	// Actor is what is run.
	Actor interface{ Receive(t *Turn) }
	// CellKind names a cell.
	CellKind uint8
	// Spec describes an actor that accepts M.
	Spec[M any] struct {
		Name string
		New  func() Actor
	}
)

// Terminated is told to parents.
type Terminated struct{}

// Spawn starts an actor.
func Spawn[M any](s Spec[M]) { s.New().Receive(&Turn{}) }

type wrapper struct{}

// Receive is the runtime's own; it has no table.
func (*wrapper) Receive(*Turn) {}
