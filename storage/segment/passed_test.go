package segment

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/felixd/felixd/wire/id"
)

// Whatever ends how, and whatever was told before it: no offset is given twice, and who was told of what was lost does not go on in its place.
func TestNoOffsetThatWasToldIsGivenAgain(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var lost []LostEnd
		base, end := id.Offset(0), id.Offset(0)
		given := map[id.Offset]bool{} // and was told of
		gone := map[id.Offset]bool{}
		for life := range 150 {
			kept, from := PassOver(lost, base, end)
			lossy := r.IntN(3) > 0
			if lost = kept; lossy {
				lost = Reserve(lost, from, from.Add(8))
			}
			if len(lost) > MaxLostEnds {
				t.Fatalf("%d lost ends", len(lost))
			}
			for o := base; o <= from; o++ {
				if _, yes := PassedOver(lost, from, o); o > base && gone[o-1] && !yes {
					t.Fatalf("seed %d, life %d: a reader of the lost %d goes on at %d, %v", seed, life, o-1, o, lost)
				}
			}
			if life == 0 {
				if _, yes := PassedOver(lost, from, from); yes {
					t.Fatal("nothing was lost")
				}
			}
			told := from
			for range r.IntN(20) {
				if limit := lost; lossy && told == limit[len(limit)-1].Cursors {
					lost = Reserve(lost, from, told.Add(8))
				}
				if given[told] {
					t.Fatalf("seed %d, life %d: %d is given again, %v", seed, life, told, lost)
				}
				given[told] = true
				told++
			}
			switch end = told; {
			case r.IntN(3) == 0:
				lost = Unreserve(lost, from)
			case lossy:
				for end > from && r.IntN(4) > 0 {
					end--
					gone[end] = true
				}
			}
			if r.IntN(10) == 0 {
				base = max(base, end-min(end, 5))
			}
		}
	}
}

// A reader that was told of nothing that was lost goes on, also in a log that has used up what it had reserved.
func TestAReaderThatMissesNothingGoesOn(t *testing.T) {
	for until := range id.Offset(4) {
		lost, from := PassOver(Reserve(nil, 10, 20+until), 0, 20)
		if want := id.Offset(20); until > 0 && from != want+until+1 || until == 0 && (from != want || len(lost) != 0) {
			t.Errorf("reserved up to %d, ended at 20: goes on at %d, %v", 20+until, from, lost)
		}
		for o := id.Offset(0); o <= from; o++ {
			if next, yes := PassedOver(lost, from, o); yes != (o > 20 && o <= 20+until) || yes && next != from {
				t.Errorf("reserved up to %d: %d is passed over: %v, to %d", 20+until, o, yes, next)
			}
		}
		if got := fmt.Sprint(Unreserve(Reserve(lost, from, from+5), from)); got != fmt.Sprint(lost) {
			t.Errorf("after an end in order: %s", got)
		}
	}
}
