// Package sessioncore decides what happens on one client stream: which bytes make a frame, whether a request may be made
// by this role in this phase with these rights, in which order answers leave and how each is encoded. It knows no socket,
// clock, goroutine or actor: a lane feeds it and performs what it returns, and so does the simulation.
//
// Guarantees, each a test of the same name:
//   - every request that is owed an answer gets exactly one, in the order of the requests;
//   - nothing is sent that the client did not offer to understand;
//   - an unacknowledged publish is never answered, not even with an error;
//   - what a stream holds is bounded: requests by the window, answers by OutLimit, a frame by its phase's limit.
package sessioncore
