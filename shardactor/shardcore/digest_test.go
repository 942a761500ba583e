package shardcore

import (
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
)

// digests steps the inputs one after the other and returns the digest before the first and after each.
func digests(inputs []Input) (list []uint64) {
	c := New(DefaultOptions())
	list = append(list, c.Digest())
	for _, in := range inputs {
		c.Step(At{Wall: time.UnixMilli(5)}, in)
		list = append(list, c.Digest())
	}
	return list
}

func story() []Input {
	write := func(token Token, count uint32) *Write {
		return &Write{Token: token, Batch: &batch.Batch{Count: count, Kind: batch.Records, Body: make([]byte, 10)}}
	}
	return []Input{Open{Generation: 1}, write(1, 1), Recovered{Tails: MainTail(7)}, write(2, 1), write(3, 2), DiskStalled{}, write(4, 1), DiskBack{}, Drain{}}
}

func TestEqualStoriesHaveEqualDigestsAndEachInputShows(t *testing.T) {
	first, second := digests(story()), digests(story())
	seen := map[uint64]int{}
	for i, d := range first {
		if d != second[i] {
			t.Errorf("after input %d two cores that were stepped alike differ", i)
		}
		if at, twice := seen[d]; twice {
			t.Errorf("the digest after input %d is that after input %d", i, at)
		}
		seen[d] = i
	}
}

func TestTheOrderOfTwoWritesIsInTheDigest(t *testing.T) {
	a, b := story(), story()
	b[3], b[4] = b[4], b[3]
	x, y := digests(a[:5]), digests(b[:5])
	if x[5] == y[5] {
		t.Error("two writes changed places, and the digest is the same")
	}
}
