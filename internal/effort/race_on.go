//go:build race

package effort

// Raced says that this binary is built with the race detector: several times slower, with more memory.
const Raced = true
