package client

import (
	"context"
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Message is one record that a group handed out: claimed for whoever polled it, until it is settled or its visibility lapses.
type Message struct {
	Payload []byte // belongs to the receiver
	Shard   uint32
	Offset  id.Offset
	// Attempts is which delivery this is, from 1; 0 when the broker does not tell. A nack or an extend that names it takes effect
	// only while this delivery stands.
	Attempts uint32
	// SkippedBefore is how many offsets just below hold no record for this group: retention dropped them, or they never held any.
	SkippedBefore uint64
	Publisher     string    // the principal that published, with Options.Publishers; empty when not known
	Timestamp     time.Time // when the broker appended it; zero when not known
}

// Bounds of polls, of this client and of the protocol.
const (
	// GroupPollMax is how many records one poll hands out at most.
	GroupPollMax = wire.MaxGroupRecords
	// GroupMemberMaxBytes is how long the name of a member may be, in bytes.
	GroupMemberMaxBytes = 128
	// groupTimeMax bounds waits, delays and visibilities: far more than any broker grants.
	groupTimeMax = 365 * 24 * time.Hour
)

// GroupPollOptions say what a poll asks for. The zero value takes one record, if there is one now.
type GroupPollOptions struct {
	// Max is how many records at most; 0 means 1, and GroupPollMax is the most. A client whose MaxFrameBytes is below the default
	// asks for one at a time, since a poll cannot bound the bytes of its answer.
	Max int
	// Wait is how long the broker may look for records when there are none, rounded up to milliseconds. The broker has a bound of
	// its own (30 s unless it is set otherwise), and may answer with none before.
	Wait time.Duration
	// Visibility is how long the records stay claimed, rounded up to milliseconds; 0 leaves it to the broker. The broker bounds it.
	Visibility time.Duration
	// Member is the name under which the claims are kept, at most GroupMemberMaxBytes; empty for none. Reclaim asks for what the
	// member had claimed on older connections, which comes first and counts as delivered once more. It is for one who knows that
	// nobody else works under this name.
	Member  string
	Reclaim bool
}

// GroupPoll claims records of one shard for this caller: those that were given back or whose claim lapsed, then new ones, in the
// order of their offsets. None is an ordinary answer. The first poll of a group creates it, at the oldest record there is; see
// GroupSeek. Settle each record with GroupAck, GroupNack or GroupDeadLetter before its visibility lapses, or prolong it with
// GroupExtend. Consume does all this, for all shards.
//
// Without an answer the error matches ErrOutcomeUnknown, and it is not sent again: records may be claimed then that nobody has.
// Nothing is lost, they come again when their visibility has lapsed. Polling again is safe.
func (c *Client) GroupPoll(ctx context.Context, namespace, stream string, shard uint32, group string, o GroupPollOptions) ([]Message, error) {
	k := c.groupCall("poll", namespace, stream, shard, group)
	if err := o.check(k.op); err != nil {
		return nil, err
	}
	m := c.groupPoll(k, &o)
	k.message, k.writes, k.wait = m, true, o.Wait
	if o.Visibility > 0 {
		k.require(wire.FeatureGroupClaimControl, "a visibility on group_poll")
	}
	if o.Member != "" {
		k.require(wire.FeatureGroupConsumer, "members of groups")
	}
	answer, err := k.ask(ctx)
	if err != nil {
		return nil, err
	}
	records, ok := answer.(*wire.GroupRecords)
	if !ok {
		return nil, k.refused(answer)
	}
	if err := echoes(k.op, k.target.RequestID, records.RequestID); err != nil {
		return nil, err
	}
	return messagesOf(k.op, m, records)
}

// groupPoll is the request for what the options say.
func (c *Client) groupPoll(k *groupCall, o *GroupPollOptions) *wire.GroupPoll {
	m := &wire.GroupPoll{
		GroupTarget: k.target, MaxRecords: uint32(c.pollMax(o.Max)), Reclaim: o.Reclaim,
		WaitMillis: roundUpMillis(o.Wait), VisibilityMillis: roundUpMillis(o.Visibility),
	}
	if o.Member != "" {
		m.Consumer = wire.Some(o.Member)
	}
	return m
}

// pollMax is how many records a poll asks for, so that its answer fits a frame this client takes.
func (c *Client) pollMax(most int) int {
	if c.opts.MaxFrameBytes < wire.MaxPayload {
		return 1
	}
	return max(1, most)
}

// messagesOf takes an answer over. One that hands out more than was asked for, or one record twice, is refused.
func messagesOf(op string, asked *wire.GroupPoll, m *wire.GroupRecords) ([]Message, error) {
	if n := len(m.Records); n > int(asked.MaxRecords) {
		return nil, &ProtocolError{Op: op, What: fmt.Sprintf("handed out %d records when asked for %d", n, asked.MaxRecords)}
	}
	all := make([]Message, len(m.Records))
	seen := make(map[id.Offset]struct{}, len(m.Records))
	for i, r := range m.Records {
		if _, twice := seen[r.Offset]; twice {
			return nil, &ProtocolError{Op: op, What: fmt.Sprintf("handed out offset %s twice in one answer", r.Offset)}
		}
		seen[r.Offset] = struct{}{}
		all[i] = Message{
			Payload: r.Payload, Shard: asked.Shard, Offset: r.Offset, Attempts: r.Attempts,
			SkippedBefore: r.SkippedBefore, Publisher: r.Publisher.V,
		}
		if r.TimestampMicros.Set {
			all[i].Timestamp = time.UnixMicro(int64(r.TimestampMicros.V))
		}
	}
	return all, nil
}

func (o *GroupPollOptions) check(op string) error {
	bad := func(argument, problem string) error {
		return &ArgumentError{Op: op, Argument: argument, Problem: problem}
	}
	switch {
	case o.Max < 0 || o.Max > GroupPollMax:
		return bad("Max", fmt.Sprintf("is %d; use 1 to %d, or 0 for 1", o.Max, GroupPollMax))
	case o.Wait < 0 || o.Wait > groupTimeMax:
		return bad("Wait", fmt.Sprintf("is %v; use 0 to %v", o.Wait, groupTimeMax))
	case o.Visibility < 0 || o.Visibility > groupTimeMax:
		return bad("Visibility", fmt.Sprintf("is %v; use a positive one, or 0 for the broker's", o.Visibility))
	case o.Reclaim && o.Member == "":
		return bad("Member", "is empty, and Reclaim needs one; give the name whose claims to take back")
	}
	if problem := memberProblem(o.Member); problem != "" {
		return bad("Member", problem)
	}
	return nil
}
