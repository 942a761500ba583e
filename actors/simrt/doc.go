// Package simrt runs the actors and pumps of a whole cluster in one goroutine, in an order that one seed decides.
//
// A World holds everything that could run now: turns of actors, pumps, timers that are due, steps of clients and of the network. Each
// Step picks one of them by the seed and runs it until it returns or waits. Nothing else runs meanwhile, so the same seed and the same
// program give the same run, and the trace hash proves it: it covers, for every step, what ran, which messages it took, and a digest of
// what it left behind.
//
//   - Scheduler drives the actors of one node. The seed chooses the size of each turn.
//   - Go starts a pump: a coroutine that gives way only where it waits at a Gate.
//   - Clock is the clock of one node, with a rate and an offset of its own, over the one true time of the World. Timers that are due at
//     the same moment fire in an order that the seed decides.
//   - True time passes with each step, by a random amount up to Options.StepTime, and jumps to the next timer when nothing can run.
//
// Nothing in here may be used from another goroutine, so there are no locks. Code under test must not wait for anything but a Gate: a pump
// that blocks on a channel blocks the world.
package simrt
