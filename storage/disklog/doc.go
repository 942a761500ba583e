// Package disklog keeps the logs of shards on disk. A Store is one directory tree with one owner; a Log is one shard's log in it: a chain
// of segments that is only ever appended to, and whole segments that retention removes from its head.
//
// What it guarantees, each with a test of that name:
//
//  1. An acknowledged batch is never lost: in OnCommit a seq is reported by Notify.Persisted after the bytes were synced, and what was
//     reported is read back after any power cut, at its offset.
//  2. What can be read after a power cut is a prefix of what was appended, without a gap.
//  3. Nobody waits: Append and its like only queue. All file work happens in jobs of the Executor, at most one that writes and one that
//     syncs per log, so that a sync that hangs stops neither the callers nor other logs.
//  4. One sync covers everything that was written when it began; a lone append is synced right after its write, by the same job.
//  5. Completions come in the order of their seqs.
//  6. A failed write takes no offsets: the log is cut back to the last good byte and the next append lands where this one would have.
//  7. A failed sync ends the log until the process is started anew: nothing is acknowledged after it, and it is never tried again.
//  8. A log without writes holds no file, no timer and no goroutine.
package disklog
