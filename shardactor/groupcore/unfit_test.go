package groupcore

import (
	"testing"

	"github.com/felixd/felixd/wire/id"
)

// A record that no answer can hold is a dead letter, wherever it comes, and those behind it are handed out.
func TestARecordThatFitsNoAnswerIsADeadLetterAndHoldsNobodyUp(t *testing.T) {
	s := newShell(small(), 5)
	s.unfit = map[id.Offset]bool{0: true, 2: true, 3: true}
	var got []id.Offset
	for range 2 {
		for _, h := range s.records(Poll{Max: 5}) {
			got = append(got, h.Offset)
			s.ack(h.Offset)
		}
	}
	expect(t, "handed out", got, []id.Offset{1, 4})
	expect(t, "dead letters", s.deads(), []id.Offset{0, 2, 3})
	expect(t, "redrive", refused(s.do(Redrive{Ask: s.ask(), Offset: 2}).Refusal), "ok")
	expect(t, "handed out after a redrive", len(s.records(Poll{Max: 5})), 0)
	expect(t, "dead letters again", s.deads(), []id.Offset{0, 2, 3})
	s.crash([logCount]bool{})
	expect(t, "dead letters after a crash", s.deads(), []id.Offset{0, 2, 3})
	expect(t, "nothing is left", len(s.records(Poll{Max: 5})), 0)
}
