package sessionactor

import "github.com/felixd/felixd/wire"

// pollHeld is what a poll takes in memory while it waits, in bytes, beside its names: its place in its stream, what was asked, and its entries
// in its lane, in its group's actor and in the group's order of waiting. 800 to 1070 are measured, the most where the ring of a stream has
// just grown (TestAThousandWaitingPollsCostNoGoroutines).
const pollHeld = 1280

// pollBytes is what a poll is counted with: its names are kept once, a member's name and principal once more. Only what is kept counts: the
// frame, and whatever else was in it, is let go of.
func pollBytes(m *wire.GroupPoll, subject string) int {
	n := pollHeld + namesLen(m.TenantID, m.Namespace, m.Stream) + len(m.Group)
	if m.Consumer.Set {
		n += 2*len(m.Consumer.V) + len(subject)
	}
	return n
}
