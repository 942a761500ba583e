package main

import (
	"fmt"
	"strings"
)

// mark is a place that a campaign must reach. A test that reaches none of them proves nothing.
type mark uint8

const (
	markRefusedByLane   mark = iota // a publish found the shard's mailbox full and was answered overloaded
	markRefusedByPermit             // the node had no permit for a publish, and it was answered overloaded
	markParkedAdmitted              // a request waited for permits and got them
	markPanicQueued                 // a shard failed with requests queued: refused
	markPanicStepped                // a shard failed with requests looked at: unknown
	markDropUnacked                 // a publish nobody wanted an answer for found a full mailbox
	markDropSlow                    // a slow subscriber lost records
	markWouldBlock                  // an answer did not fit the stream at once
	markBlock                       // a write waited for the reader
	markShortRead                   // a read took less than there was
	markResetMidFrame               // a client broke a stream off inside a frame
	markConnLost                    // a connection was lost with requests open
	markQuarantine                  // a shard was quarantined
	markReturn                      // a quarantined shard came back and served
	markRestart                     // a shard failed and was brought up at once
	markNoPlace                     // a subscription found no stream to deliver on
	markSessionCrash                // a session or a subscription failed
	markLifecyclePanic              // a shard panicked while starting or stopping
	markDeleted                     // a resource was deleted while it was used
	markSlowActor                   // an actor was paused or slowed
	markAuthTimeout                 // a connection was closed because a stream did not authenticate
	markGarbage                     // a stream was ended because of bytes that are no frame
	markCrowd                       // a connection was closed for too many streams before a token
	markUnsubscribed                // a client stopped an event stream
	markDrained                     // a node was drained with clients connected
	markHeldUp                      // a publisher waited for a slow subscriber, and went on
	markBudgetUsed                  // what was queued for a subscriber was lost because the readers' budget was used up
	markGathered                    // a subscription waited for more events to join those it had
	markConditionHeld               // a conditional cache write was applied
	markConditionFailed             // a conditional cache write was not applied

	markCount
)

var markNames = [markCount]string{
	"refused by lane", "refused by permit", "parked and admitted", "panic with requests queued", "panic with requests stepped",
	"drop: unacknowledged publish", "drop: slow subscriber", "block: answer does not fit", "block: write waits", "short read", "reset mid-frame",
	"connection lost with requests open", "quarantine", "return from quarantine", "restart", "no stream to deliver on", "session or subscription crash",
	"panic in a lifecycle turn", "resource deleted in use", "actor paused or slowed", "authentication timeout", "stream ended by garbage", "too many streams of a stranger", "unsubscribed", "drained with clients",
	"block: publisher waited for a reader", "drop: readers' budget used up", "events waited for others",
	"a conditional cache write was applied", "a conditional cache write was not applied",
}

// String says in words what was reached.
func (m mark) String() string { return markNames[m] }

// Marks counts how often each place was reached.
type Marks [markCount]int

func (m *Marks) hit(x mark) { m[x]++ }

// Add takes the counts of another run.
func (m *Marks) Add(o *Marks) {
	for i, n := range o {
		m[i] += n
	}
}

// Below lists the marks reached less often than least.
func (m *Marks) Below(least int) (missing []string) {
	for i, n := range m {
		if n < least {
			missing = append(missing, fmt.Sprintf("%s (%d)", mark(i), n))
		}
	}
	return missing
}

// String is one line for each mark.
func (m *Marks) String() string {
	var b strings.Builder
	for i, n := range m {
		fmt.Fprintf(&b, "%9d  %s\n", n, mark(i))
	}
	return b.String()
}
