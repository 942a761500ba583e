// Package testkit runs a whole broker in a process of its own for tests: the real node behind real QUIC on loopback, whose memory,
// goroutines, descriptors and exit code are nobody else's. With -race the broker is instrumented too.
//
// A package of tests calls Main first thing in its TestMain, which makes the test binary be the broker when it was started as one.
// Start then runs that binary and returns the broker as a test sees it: an address for clients, and commands for what only the
// process itself can tell or do (Look, Collect, Fault, Drain, Assign).
//
// Daemon is the other way round: felixd as it is delivered, built without instrumentation and run over a directory that outlives it. For brokers in
// a test's own process there are Gate, Sum and FreePort, and for all of them Patience, which is how long what must come may take, and Figure, which
// is how much longer than on a machine of its own something may take at a landing.
//
// Only tests import it.
package testkit
