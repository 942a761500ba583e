package disklog

// Notify is how a log reports what became of what was asked of it. Calls come from jobs of the executor, one at a time for Persisted,
// WriteFailed and SealFailed, and must not block or call back into the log.
type Notify interface {
	// Persisted says that everything up to seq that was not refused before is done: appends as durable as the mode promises, generations
	// saved, cuts made. Seqs ascend.
	Persisted(seq uint64)
	// WriteFailed refuses seq, after everything before it was completed. Nothing of it is in the log. Appends queued behind it are
	// dropped without a word; the next one that begins at the log's tail is taken again.
	WriteFailed(seq uint64, err error)
	// SealFailed refuses the Seal seq, in the same order. It drops nothing: what is queued behind it is written all the same, for the log
	// ends where it did.
	SealFailed(seq uint64, err error)
	// Poisoned ends the log, once: nothing that was not reported will be.
	Poisoned(err error)
	// Stalled says that a job of this log takes suspiciously long.
	Stalled()
	// Back says that it ended after all.
	Back()
}
