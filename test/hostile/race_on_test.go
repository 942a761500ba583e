//go:build race

package hostile

// raceEnabled says that the tests and their broker are instrumented: several times slower, with more memory.
const raceEnabled = true
