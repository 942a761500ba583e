//go:build race

package testkit

// Raced says that tests and broker are instrumented: several times slower, with more memory.
const Raced = true
