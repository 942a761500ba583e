package testkit

import "github.com/felixd/felixd/internal/effort"

// Raced says that tests and broker are instrumented: several times slower, with more memory.
const Raced = effort.Raced
