package sessioncore

import (
	"testing"

	"github.com/felixd/felixd/wire"
)

// digests plays a story on a stream and returns the digest after each step.
func digests(t *testing.T, first, second uint64) (list []uint64) {
	s := unauthenticated(wire.RoleControl)
	note := func() { list = append(list, s.Digest()) }
	note()
	letIn(t, s, todayOffered(), rights{})
	note()
	a := s.Frame(acked(first)).Token
	note()
	b := s.Frame(acked(second)).Token
	note()
	s.Settle(b, Answer{})
	note()
	s.Settle(a, Answer{})
	note()
	s.Sent()
	note()
	s.Drain()
	note()
	s.End("over")
	note()
	return list
}

func TestEqualStoriesHaveEqualDigestsAndEachStepShows(t *testing.T) {
	one, two := digests(t, 1, 2), digests(t, 1, 2)
	seen := map[uint64]int{}
	for i, d := range one {
		if d != two[i] {
			t.Errorf("after step %d two streams that took the same differ", i)
		}
		if at, twice := seen[d]; twice {
			t.Errorf("the digest after step %d is that after step %d", i, at)
		}
		seen[d] = i
	}
}

func TestTheOrderOfTwoRequestsIsInTheDigest(t *testing.T) {
	if one, two := digests(t, 1, 2), digests(t, 2, 1); one[3] == two[3] {
		t.Error("two requests changed places, and the digest is the same")
	}
}
