// Package shardcore decides everything a shard replica decides: which role it plays, which offsets a write gets, when a
// record may be read and when its publisher may be told. It knows no clock, goroutine, file or actor: inputs come in
// through Step, what must be done leaves through Take, once per turn, so that whatever arrived together is appended
// together.
//
// Persistence is an effect and its completion an input. The core withholds every answer and every reader's view of a
// record until the append that holds it has completed; a log in memory completes at once, a log on disk after a sync,
// and the core does not know which.
//
// Numbered publishes are judged here too. What Producers remembers of them follows from the batches of the log alone: those below the
// durable end it has noted, those above it are claims that a failure may still give back.
//
// One core owns all logs of a shard (main, and beside it cursors and dead letters or counters), each a logState: a failed write voids
// what was claimed after it in its own log and nothing of the others, while a poisoned log ends the whole replica. With one voter the
// commit offset is the durable end; that is the only case of today.
//
// A write may carry a Judge. It is asked at the claim, when every earlier write is either in the log or claimed, so that what it decides
// holds if all those claims do; a write that comes to nothing waits for the claims it rests on, and is judged again if they fail.
package shardcore
