package main

import (
	"fmt"
	"strings"
)

// dmark is a place that a campaign of durable worlds must reach.
type dmark uint8

const (
	dmarkKill dmark = iota
	dmarkKillInJob
	dmarkCut
	dmarkCutInJob
	dmarkCutLost
	dmarkRecoveredCut
	dmarkHistory
	dmarkPoisoned
	dmarkFull
	dmarkWriteFailed
	dmarkStalled
	dmarkBack
	dmarkWaiting
	dmarkSlow
	dmarkPanic
	dmarkUnknown
	dmarkRoll
	dmarkTrimmed
	dmarkCompressed
	dmarkResumed
	dmarkTooOld
	dmarkInFuture
	dmarkMoved
	dmarkLagged
	dmarkDuplicate
	dmarkResent
	dmarkGap
	dmarkUnknownProducer
	dmarkWon
	dmarkMismatch
	dmarkCommit
	dmarkState
	dmarkEphemeral
	dmarkConnLost
	dmarkAtClaim
	dmarkAudit
	dmarkAtStart
	dmarkReadFailed
	dmarkOpenFailed
	dmarkInOrder
	dmarkAssigned
	dmarkCacheHit
	dmarkCacheMiss
	dmarkCold
	dmarkColdRemoved
	dmarkExpired
	dmarkConditionHeld
	dmarkConditionFailed
	dmarkConditionWaited
	dmarkCacheFailed
	dmarkAdded
	dmarkCompacted
	dmarkSumsCompacted
	dmarkCopied
	dmarkWatched
	dmarkRetained
	dmarkWatchResumed
	dmarkResnapshot
	dmarkWatchLagged
	dmarkInMemory
	dmarkCacheAudit
	dmarkHanded
	dmarkRedelivered
	dmarkSettled
	dmarkLateAck
	dmarkNacked
	dmarkExtended
	dmarkLateRefused
	dmarkLapsed
	dmarkReclaimed
	dmarkPollWoken
	dmarkDead
	dmarkGivenUp
	dmarkRedriven
	dmarkDiscarded
	dmarkSought
	dmarkGroupFailed
	dmarkGroupPoisoned
	dmarkGroupCompacted
	dmarkGroupAgain
	dmarkGroupLost
	dmarkDrained

	dmarkCount
)

var dmarkNames = [dmarkCount]string{
	"process killed between two jobs", "process killed inside a job", "power cut between two jobs", "power cut inside a job",
	"a power cut took something", "an open cut off an unfinished append", "a start found records", "a failed sync ended a log",
	"a write refused for want of space", "a write refused after an I/O error", "a disk stalled", "a stalled disk came back", "a shard waited for its disk",
	"a slow disk", "a shard failed and was opened again", "outcome unknown", "a segment rolled", "retention removed records", "a segment compressed",
	"a subscription resumed", "resumed too late: too old", "resumed beyond the end", "event stream ended: shard moved", "event stream ended: lagged",
	"a duplicate answered with its offset", "a batch sent again over a new connection was acknowledged", "refused: sequence gap", "refused: unknown producer",
	"a conditional publish won", "a conditional publish lost", "a commit", "a state value read", "an ephemeral stream refused what takes a log",
	"connection lost with requests open", "acknowledged at the claim", "every record read back after a start",
	"killed or cut off during a start", "a read failed", "an open failed and was tried again", "stopped in order and started again",
	"assigned anew while it served",
	"a value read", "nothing read", "a value read from the log", "a delete answered what is in the log alone", "the time of a value was over", "a conditional write was applied",
	"a conditional write was not applied", "a conditional write waited for another", "a cache write failed with its log, or was void", "a counter was added to",
	"a cache was compacted", "counters were compacted", "a compaction copied entries", "a change was watched", "a watch began with current values",
	"a watch resumed", "a watch began anew", "a watch lagged", "a cache in memory refused what takes a log", "every key read after a start",
	"a record handed out", "a record handed out again", "a settlement acknowledged", "a late settlement acknowledged", "a delivery given back", "a delivery prolonged",
	"a late nack or extend refused", "a claim lapsed", "a member took back what it held", "a waiting poll woken by a publish", "a record given up on", "given up on because somebody asked",
	"a dead letter redriven", "a dead letter discarded", "the group was moved", "the outcome of a group request unknown", "the logs of groups could not be used before a restart", "a log of groups was compacted",
	"an idle group brought up again", "a power cut took what a group had handed out", "a shard of the group drained",
}

// String says in words what was reached.
func (m dmark) String() string { return dmarkNames[m] }

// DurableMarks counts how often each place was reached.
type DurableMarks [dmarkCount]int

func (m *DurableMarks) hit(x dmark) { m[x]++ }

// Add takes the counts of another run.
func (m *DurableMarks) Add(o *DurableMarks) {
	for i, n := range o {
		m[i] += n
	}
}

// Below lists the marks reached less often than least.
func (m *DurableMarks) Below(least int) (missing []string) {
	for i, n := range m {
		if n < least {
			missing = append(missing, fmt.Sprintf("%s (%d)", dmark(i), n))
		}
	}
	return missing
}

// String is one line for each mark.
func (m *DurableMarks) String() string {
	var b strings.Builder
	for i, n := range m {
		fmt.Fprintf(&b, "%9d  %s\n", n, dmark(i))
	}
	return b.String()
}
