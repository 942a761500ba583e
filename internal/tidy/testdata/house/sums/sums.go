// Package sums has closed sets and switches over them.
package sums

// Shape is closed.
//
//sumtype:decl
type Shape interface{ shape() }

// Circle and the others are all of it.
type (
	Circle  struct{}
	Square  struct{}
	hexagon struct{}
	// Round is a part of it.
	Round interface {
		Shape
		round()
	}
)

func (*Circle) shape() {}
func (*Circle) round() {}
func (Square) shape()  {}
func (hexagon) shape() {}

// Open is marked but anybody can implement it.
//
//sumtype:decl
type Open interface{ Any() } // want sums: has no unexported method

// Free is not marked: switches over it are not judged.
type Free interface{ free() }

// Side is closed, and each reader takes its part.
//
//sumtype:decl
type Side interface{ side() }

// Left and Right are its sides.
type (
	Left  struct{}
	Right struct{}
)

func (Left) side()  {}
func (Right) side() {}

// Boxed has a parameter.
//
//sumtype:decl
type Boxed[T any] interface{ boxed(T) }

// One and Two are boxed.
type (
	One[T any] struct{}
	Two[T any] struct{}
)

func (One[T]) boxed(T)  {}
func (*Two[T]) boxed(T) {}
