// Package testkit runs a whole broker in a process of its own for tests: the real node behind real QUIC on loopback, whose memory,
// goroutines, descriptors and exit code are nobody else's. With -race the broker is instrumented too.
//
// A package of tests calls Main first thing in its TestMain, which makes the test binary be the broker when it was started as one.
// Start then runs that binary and returns the broker as a test sees it: an address for clients, and commands for what only the
// process itself can tell or do (Look, Collect, Fault, Drain, Assign).
//
// Only tests import it.
package testkit
