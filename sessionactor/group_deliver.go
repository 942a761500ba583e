package sessionactor

import (
	"context"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/wire"
)

// groupInline is how many bytes of payloads are encoded where the answer is given, which is a group's turn: what takes a few tens of
// microseconds.
const groupInline = 64 << 10

// Deliver implements shardactor.GroupReply.
func (l *lane) Deliver(t shardcore.Token, records []groupcore.Handed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	token := sessioncore.Token(t)
	p := l.takeOver(token)
	if p == nil {
		panic("sessionactor: records for a poll that no shard has")
	}
	if !l.core.IsOpen(token) {
		l.dropRecords(p)
		return
	}
	m := l.core.Asked(token).(*wire.GroupPoll)
	answer, bytes := p.answer(records, m.RequestID, l.core.Grant())
	result := "ok"
	if len(answer.Records) == 0 {
		result = "empty"
	}
	l.countGroup(m, result)
	if bytes <= groupInline || l.core.Gone() || !l.session.pump("group answer", func(context.Context) { l.answerPoll(p, answer) }) {
		l.settle(token, sessioncore.Answer{Message: answer})
		l.dropRecords(p)
	}
}

// answerPoll answers a poll with so much that encoding it takes a while. The places of its reads are held until then.
func (l *lane) answerPoll(p *heldPoll, answer *wire.GroupRecords) {
	defer l.dropRecords(p) // nobody else has it any more
	f := wire.Refuse(wire.CodeInternal, "the broker failed while it answered")
	defer l.resolve(p.token, sessioncore.Answer{Refusal: &f}) // after a panic it has no other answer
	l.resolve(p.token, sessioncore.Answer{Frame: wire.AppendJSONFrame(nil, answer)})
}

// answer is what a poll is answered with, and how many bytes of payloads that has. handed are some of the records that were read for it, in
// the same order.
func (p *heldPoll) answer(handed []groupcore.Handed, requestID uint64, grant wire.Grant) (answer *wire.GroupRecords, bytes int) {
	list, next := make([]wire.GroupRecord, 0, len(handed)), 0
	for i := range handed {
		h := &handed[i]
		for p.records[next].Offset != h.Offset { // the others were finished while they were read
			next++
		}
		r := p.records[next]
		next++
		r.Attempts = h.Attempts
		if grant.Features.Has(wire.FeatureGroupSkipped) {
			r.SkippedBefore = h.Skipped
		}
		if !grant.Features.Has(wire.FeatureRecordTimestamps) {
			r.TimestampMicros = wire.Opt[uint64]{}
		}
		list, bytes = append(list, r), bytes+len(r.Payload)
	}
	return &wire.GroupRecords{Records: list, RequestID: requestID}, bytes
}
