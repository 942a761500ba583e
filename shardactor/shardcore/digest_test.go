package shardcore

import (
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
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
	return []Input{
		Open{Generation: 1}, write(1, 1), Recovered{Tails: MainTail(7)}, Persisted{Seq: 1}, Persisted{Seq: 1},
		write(2, 1), write(3, 2), DiskStalled{}, write(4, 1), DiskBack{}, Drain{},
	}
}

func TestEqualStoriesHaveEqualDigestsAndEachInputShows(t *testing.T) {
	first, second := digests(story()), digests(story())
	seen := map[uint64]int{}
	for i, d := range first {
		if d != second[i] {
			t.Errorf("after input %d two cores that were stepped alike differ", i)
		}
		at, twice := seen[d]
		if repeats := i == 5; twice != repeats { // a completion that is not known changes nothing
			t.Errorf("the digest after input %d is that after input %d", i, at)
		}
		seen[d] = i
	}
}

// Each of these differs from the others in one thing, which the digest has to show.
func TestEveryPieceOfStateIsInTheDigest(t *testing.T) {
	numbered := func(producer, sequence uint64, fill byte) *Write {
		return &Write{Batch: &batch.Batch{Count: 1, Kind: batch.Records, Body: []byte{fill}, ProducerID: producer, Sequence: sequence}}
	}
	restored := func(base id.Offset, notes ...Numbered) Recovered {
		p := NewProducers()
		for _, n := range notes {
			p.Note(n)
		}
		return Recovered{Tails: MainTail(20), Base: base, Producers: p}
	}
	leading := func(more ...Input) []Input {
		return append([]Input{Open{Generation: 1}, restored(0, Numbered{Producer: 5, Base: 10, Count: 1}), Persisted{Seq: 1}}, more...)
	}
	early := &Write{AtClaim: true, Batch: &batch.Batch{Count: 1, Kind: batch.Records, Body: []byte{0}}}
	waiting := func(until id.Offset, token Token, code wire.Code) []Input {
		v := Verdict{Until: until}
		if code != 0 {
			f := wire.Refuse(code, "no")
			v.Refusal = &f
		}
		return []Input{
			&Write{Batch: &batch.Batch{Count: 2, Kind: batch.Records}},
			&Write{Token: token, Batch: &batch.Batch{Kind: batch.Records}, Judge: func(id.Offset, uint64) Verdict { return v }},
		}
	}
	held := &Write{Batch: &batch.Batch{Count: 1, Kind: batch.Records}}
	stories := map[string][]Input{
		"opening":           {Open{Generation: 1}},
		"of another":        {Open{Generation: 2}},
		"saving":            {Open{Generation: 1}, restored(0)},
		"saving again":      {Open{Generation: 1}, restored(0), WriteFailed{Seq: 1}},
		"held":              {Open{Generation: 1}, held},
		"base":              {Open{Generation: 1}, restored(3)},
		"producer":          {Open{Generation: 1}, restored(0, Numbered{Producer: 5, Base: 10, Count: 1})},
		"other producer":    {Open{Generation: 1}, restored(0, Numbered{Producer: 6, Base: 10, Count: 1})},
		"other sequence":    {Open{Generation: 1}, restored(0, Numbered{Producer: 5, Sequence: 1, Base: 10, Count: 1})},
		"other offset":      {Open{Generation: 1}, restored(0, Numbered{Producer: 5, Base: 11, Count: 1})},
		"more records":      {Open{Generation: 1}, restored(0, Numbered{Producer: 5, Base: 10, Count: 2})},
		"other content":     {Open{Generation: 1}, restored(0, Numbered{Producer: 5, Base: 10, Count: 1, Sum: 1})},
		"other length":      {Open{Generation: 1}, restored(0, Numbered{Producer: 5, Base: 10, Count: 1, Length: 1})},
		"leading":           leading(),
		"failed":            leading(Poisoned{}),
		"trimmed":           leading(Trimmed{Base: 4}),
		"trimmed away":      leading(Trimmed{Base: 11}),
		"claim":             leading(&Write{Batch: &batch.Batch{Count: 1, Kind: batch.Records, Body: []byte{0}}}),
		"numbered claim":    leading(numbered(5, 1, 0)),
		"other numbers":     leading(numbered(7, 0, 0)),
		"answered at claim": leading(early),
		"duplicate":         leading(numbered(5, 1, 0), numbered(5, 1, 0)),
		"other log":         leading(&Write{Log: LogCounters, Batch: &batch.Batch{Count: 1, Kind: batch.Records, Body: []byte{0}}}),
		"other log's tail":  {Open{Generation: 1}, Recovered{Tails: [logCount]id.Offset{LogMain: 20, LogCounters: 1}}},
		"fails elsewhere":   leading(LogFailed{Log: LogCounters, Reason: "EIO"}),
		"trimmed elsewhere": {Open{Generation: 1}, Recovered{Tails: [logCount]id.Offset{LogMain: 20, LogCounters: 1}}, Trimmed{Log: LogCounters, Base: 1}},
		"folded":            leading(&Write{Fold: true, Batch: &batch.Batch{Count: 1, Kind: batch.Records, Body: []byte{0}}}),
		"held elsewhere":    {Open{Generation: 1}, &Write{Log: LogCounters, Batch: &batch.Batch{Count: 1, Kind: batch.Records}}},
		"waiting":           leading(waiting(21, 0, 0)...),
		"waiting longer":    leading(waiting(22, 0, 0)...),
		"other waits":       leading(waiting(21, 1, 0)...),
		"refusal waits":     leading(waiting(21, 0, wire.CodeOverloaded)...),
		"other refusal":     leading(waiting(21, 0, wire.CodeStorage)...),
	}
	seen := map[uint64]string{}
	for name, inputs := range stories {
		list := digests(inputs)
		d := list[len(list)-1]
		if other, twice := seen[d]; twice {
			t.Errorf("%q has the digest of %q", name, other)
		}
		seen[d] = name
	}
}

func TestTheOrderOfTwoWritesIsInTheDigest(t *testing.T) {
	a, b := story(), story()
	b[5], b[6] = b[6], b[5]
	x, y := digests(a[:7]), digests(b[:7])
	if x[7] == y[7] {
		t.Error("two writes changed places, and the digest is the same")
	}
}
