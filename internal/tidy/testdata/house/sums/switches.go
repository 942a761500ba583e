package sums

func forgets(s Shape) {
	switch s.(type) { // want sums: sums.Shape has no case for Square, hexagon
	case *Circle:
	}
	switch x := s.(type) { // want sums: sums.Shape gives to its default hexagon
	case *Circle, Square:
		_ = x
	default:
		println("dropped")
	}
	switch s := any(s).(type) { // not over the closed set
	case Square:
		_ = s
	}
}

func generics(b Boxed[int]) {
	switch b.(type) { // want sums: sums.Boxed has no case for Two
	case One[int]:
	}
	switch b.(type) {
	case One[int], *Two[int]:
	}
}

func complete(s Shape, f Free, side Side) int {
	switch s.(type) {
	case Round, Square:
	case hexagon:
	}
	switch s.(type) {
	case nil:
	case *Circle:
	default:
		panic("sums: unknown shape")
	}
	switch f.(type) {
	}
	switch side.(type) {
	case Left:
	}
	switch s.(type) {
	case Square:
		return 1
	}
	panic("sums: unknown shape")
}
