// Package keyed is the reading "key to latest record" of a log: a cache, the cursors and the settled ranges of groups, dead letters and
// counters are all kept this way. The log is the truth; what is here is derived from it, held in memory, and built again from the log
// whenever there is doubt.
//
// # Parts
//
//   - Index is the table: open addressing over 64-bit words, and an arena of bytes behind it. Neither holds pointers, so that the garbage
//     collector looks at a few thousand blocks for a million keys and at nothing in them. One goroutine writes; any number read, each
//     under a read lock for the length of one lookup.
//   - Fold applies the batches of a log to an Index, in order. What a record means is said by a Decoder; values are opaque here.
//   - Snapshot writes an index out in small steps, beside a fold that goes on; Load reads it back.
//   - Compaction decides, step by step, how the live records of the log's head are appended again at its tail so that the head can go. It
//     touches nothing: each step is an effect for whoever drives it.
//   - Budget is the memory that the indexes of a node share.
//
// There is no clock, no goroutine, no timer, no file and no randomness in this package: the time comes with each call, and the seed that
// keeps clients from choosing keys that collide comes with Options.
//
// # Version and place
//
// An entry has two offsets. Version is that of the record that gave the key its value, and is what clients see, compare with and are
// told: it is fixed when the value is written and never changes with it. Offset is where a record with this value stands in the log now.
// They differ only after a compaction: the copy that it appends is a record of its own, at an offset of its own, which says "moved" and
// carries the version, and with it the end of life, that the value always had. Hence:
//
//  1. Version <= Offset, and both only grow for one key, until it is deleted; after that they grow again, since offsets are never reused.
//  2. A moved record changes no answer: not the value, not the version, not the expiry. It is ignored where the key already has a newer
//     version. Watches skip it.
//  3. A log that begins with moved records, because what they were copied from was removed, folds to the same entries.
//  4. A deleted key stays deleted: a moved record is claimed only while no other change of that key is claimed and not yet folded (see
//     Turn); otherwise a delete could stand before the copy of what it deleted.
//
// # Time
//
// An expiry is absolute, in milliseconds since the Unix epoch. An entry is absent for a reader whose clock says that moment or a later one;
// that is a question about the reader's clock and changes nothing. So a clock that was ahead and is set back shows the entry again, and one
// that is set back lengthens its life by as much; only a record in the log ends a life for good, and nothing here brings back what one
// ended. Compaction and snapshots keep entries that have expired but were not deleted, so that neither a restart nor a compaction under a
// wrong clock ends a life early.
//
// # Memory
//
// An entry costs its key, its value if that is kept inline, and about 60 to 90 bytes; EntryCost is what is booked. Values above
// Options.InlineMax stay in the log: a reader gets their place. An index never evicts. Admit refuses what does not fit before it is
// appended; what a log holds already is always folded, even over the budget, since leaving it out would be a wrong answer.
//
// Bytes that were overwritten or deleted are garbage in the arena until their chunk is emptied. That happens by itself, some blocks with
// each write and never more than tidyStep bytes, so that no write waits for all of it; garbage stays under a third of what is live and one
// chunk. The table splits and merges in segments of 1024 words, so that no write waits for a table to be copied either.
//
// # Crashes
//
// Nothing here is durable by itself. An index folded from any prefix of the log is the state as of that prefix. A compaction that was cut
// off at any step leaves a log that folds to the same entries, versions and expiries: copies are redundant as long as the originals stand,
// and the originals go only after all copies are durable.
package keyed
