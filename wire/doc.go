// Package wire is every byte that passes between felixd and its clients: the frame header, the binary layouts of
// publishes, acknowledgements and event batches, the JSON messages, the table of error codes, the limits, and the
// hash that turns a key into a shard.
//
// The package is pure. It opens no socket, asks no clock, starts no goroutine and keeps no state; the same input
// always gives the same output. All binary integers are big-endian and unsigned.
//
// Who owns bytes: a binary decoder lends out slices of the payload it was given, so the payload must stay unchanged
// for as long as the decoded value is in use. A JSON decoder hands out copies. Every Append function only appends to
// dst and returns the longer slice, as the append builtin does.
//
// What to expect as errors: [FrameError] and [FlagsError] from the header, [LayoutError] from the binary layouts,
// [JSONError] and [UnknownTypeError] from JSON. LayoutError and JSONError are both marked with [ErrMalformed], which
// errors.Is finds under any wrapping.
package wire
