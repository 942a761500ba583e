// Package groupcore decides everything one consumer group of one shard decides: who gets which record, for how long, what becomes of a
// record that nobody finishes, and what of that is durable before anybody is told. It knows no clock, goroutine, file or actor: inputs come
// in through Step, what must be done leaves through Take, once per turn.
//
// What all groups of a shard have in common is decided here too: when the logs are opened that they share, which group at rest is let go of,
// and who waits for that (Door), which of their notes are not to be believed because the log has lost its end (Lost), and where in those logs
// each group's keys are (Directory). And of all groups of a node: how many records each may have in play, and how much they may keep (Claims).
//
// # What is durable
//
// Two logs of the shard hold records of key and newest value, each log for all groups of the shard (see Record and Entry):
//
//   - the cursors: where the group is, the settled ranges above that, and the delivery numbers of what was handed out;
//   - the dead letters: each offset the group gave up on, or hands out again because somebody asked for that.
//
// A settlement is answered when its record is durable, so after any crash what was answered stays finished. Delivery numbers ride along:
// they are written with each poll and nobody waits for them. Claims, delays and reservations are in memory only. At most one Persist of
// each log is on its way, and everything that changes meanwhile leaves with the next one: a busy group writes in groups by itself.
//
// Each position has an epoch. A seek or a delete begins another one with a single record; ranges and numbers of an older epoch mean nothing
// from then on and are removed piece by piece. Dead letters survive a seek; those born before the epoch in which a group was created again
// mean nothing.
//
// # What is given up on
//
// A record fails when its holder gives it back, lets its claim lapse, or comes back on another connection to reclaim it. A restart of the
// broker is no failure. After MaxAttempts failures the offset is first listed as a dead letter, durably, and then finished. A crash between
// the two leaves it both listed and owed; it never vanishes.
//
// A delivery number names a delivery in a nack or an extend. Numbers that may have been used before, because a restart lost one, a redrive
// began again or an answer would exceed the limit, name a delivery only on the connection that got it, as long as that is open.
package groupcore
