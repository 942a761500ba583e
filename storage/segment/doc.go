// Package segment is the format of a shard's log on disk, and what can be said about it without touching it: encoders and decoders of
// every file, a scan over the batches of a segment, and the plan of what opening a log does to its directory. It is pure: it gets
// readers and sizes, and has no clock, no files and no goroutines.
//
// A directory holds one log (DirName). Its files:
//
//	log.meta       whose log it is; written once, before the first segment (Meta)
//	NNN.log        segments, in a chain without gaps: Header, batches (BatchHeader, publisher, body), Footer once it is sealed
//	NNN.index      places in a segment (Index); derived, never trusted
//	durable.mark   how far the newest segment was synced (Mark), with the duties of whoever writes a log
//	replica        what the replica promised (Replica)
//	name.snap      derived state, small (AppendSnapshot) or streamed (StreamWriter); ignored when it cannot be used
//	*.tmp          files that were never finished; a plan deletes them
//
// All integers are big-endian. All checksums are CRC-32C. Those of batches, footers and small files are salted with the log's id,
// so that whole bytes in the wrong log fail. The unit is the batch: it is there whole or not at all.
//
// # What a plan promises
//
// A: After a stop or a kill, when the mark is exact, no single damage to one file makes a log open that has lost a record which was
// acknowledged after a sync.
// B: A power cut alone, which leaves an older mark and any mixture of what was not synced, never makes a log refuse to open.
//
// Both hold because the mark is never ahead of what was synced: what breaks before it is damage, whatever happened last. What breaks
// past it may be either; where A and B differ, the plan decides so:
//
//	found                                        after a power cut         after a kill, damaged       decision
//	newest breaks at or past the mark            writes that never landed  records nobody was promised cut there (RepairNone); after a power cut and a damage at once, B wins
//	newest breaks before the mark                cannot be                 acknowledged records        refuse: the failure, or TailBelowDurableMark if it looks like a torn write
//	newest ends before the mark                  cannot be                 acknowledged records        refuse: TailBelowDurableMark
//	newest has another base, or other bytes      cannot be                 an old copy of it          refuse: MarkMismatch (bytes: if the mark is Summed)
//	before the mark
//	mark names the predecessor of the newest     mark is behind            nothing in newest was       as if the mark named the newest at HeaderSize
//	                                                                       promised
//	mark names an older one                      cannot be (duty 2)        a stale copy of the mark    as without a mark: A wins
//	mark is missing, damaged, of another log     cannot be (duty 1)        the mark is the damage      only what a torn write looks like is cut: the file ends inside a batch, or in zeros
//	mark names a segment past the newest         cannot be (duty 2)        a lost segment              refuse: SegmentMissing; if the mark vouches for no batch in it, it is made again
//	newest is shorter than a header, or zeros    a roll that never landed  header cut or zeroed        delete it if the mark vouches for no batch in it; without a mark, only segment 0 alone
//	newest has a header that is damaged          cannot be: headers are    any batch may be in it      refuse
//	                                             synced before use
//	segments before mark.Oldest                  unlinks undone            a stale copy came back      delete them: retention had let them go
//	first segment after mark.Oldest              cannot be (duty 3)        a lost segment              refuse: SegmentMissing. A stale mark refuses too: A wins
//	a segment with successor that has no footer  cannot be: sealed before  cut, or a stale copy        refuse: FooterMissing, or the batch that breaks
//	                                             the next one is made
//	gap or overlap, wrong id, log or name        cannot be                 swapped or misplaced file   refuse
//	newest has a footer, bytes follow            cannot be                 growth                      cut what follows if it is past the mark
//	no segment or a blank first one, no mark     creation never finished   two damages                make the first one, if no log id is expected
//
// With VerifySealed and VerifyLazy, damage inside segments that have a successor is found by whoever reads them, not by the plan;
// the checksums are the same.
package segment
