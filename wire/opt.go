package wire

// Opt is a value that a message may leave out. Set tells an absent value from a zero one; V is zero while Set is
// false.
type Opt[T any] struct {
	V   T
	Set bool
}

// Some returns an Opt that holds v.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, Set: true} }

// Or returns the value, or other when there is none.
func (o Opt[T]) Or(other T) T {
	if o.Set {
		return o.V
	}
	return other
}
