package cache

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"

	"github.com/felixd/felixd/internal/testkit"
)

// kind is what a request asks for.
type kind uint8

const (
	get kind = iota
	put
	remove
	putIfAbsent
	putIfVersion
	removeIf
	add
	sum
)

func (k kind) String() string {
	return [...]string{"get", "put", "remove", "put if absent", "put if version", "remove if version", "add", "sum"}[k]
}

// asked is one request for one key. Each value is written by one request of a history alone; 0 is no value.
type asked struct {
	kind    kind
	value   int    // of a put
	version uint64 // that a condition asks for, one more than clients say: 0 is none
	expects int    // the value of that version; -1 is none
	delta   int64  // of an add
}

// told is its answer.
type told struct {
	unknown bool // nobody knows what became of it
	found   bool // of a get, a remove and a sum
	value   int  // of a get and a remove
	// applied is of a conditional write, and version is what that told, or a get; 0 is none.
	applied bool
	version uint64
	sum     int64
}

// entry is what a key has, as the model sees it. A version that nobody was told yet is 0; top is the highest that any was told.
type entry struct {
	value        int
	version, top uint64
	counted      bool
	sum          int64
}

// learn notes the version that the value has. It reports false if it has another.
func (e *entry) learn(version uint64) bool {
	if e.value == 0 || version == 0 {
		return e.value == 0 && version == 0
	}
	if e.version == 0 {
		if version <= e.top && e.top != 0 {
			return false // versions only grow
		}
		e.version, e.top = version, version
	}
	return e.version == version
}

func (e *entry) write(value int, version uint64) bool {
	e.value, e.version = value, 0
	return version == 0 || e.learn(version)
}

// step is what one key does, one request after the other. Where an answer is unknown the request did what it had to.
func step(state, input, output any) (bool, any) {
	e, in, out := state.(entry), input.(asked), output.(told)
	switch in.kind {
	case get:
		return out.value == e.value && out.found == (e.value != 0) && e.learn(out.version), e
	case put:
		return e.write(in.value, 0), e
	case remove:
		if ok := out.unknown || out.value == e.value && out.found == (e.value != 0); !ok {
			return false, e
		}
		return e.write(0, 0), e
	case putIfAbsent:
		return conditional(e, e.value == 0, in, out)
	case putIfVersion, removeIf:
		return conditional(e, e.value != 0 && e.value == in.expects && e.learn(in.version), in, out)
	case add:
		e.counted, e.sum = true, e.sum+in.delta
		return out.unknown || out.sum == e.sum, e
	case sum:
		return out.found == e.counted && out.sum == e.sum, e
	}
	panic("a request of unknown kind")
}

func conditional(e entry, holds bool, in asked, out told) (bool, any) {
	if !out.unknown && out.applied != holds {
		return false, e
	}
	if !holds {
		return out.unknown || e.learn(out.version), e
	}
	if in.kind == removeIf {
		return out.unknown || out.version == 0, entry{top: e.top, counted: e.counted, sum: e.sum}
	}
	return (out.unknown || out.version != 0) && e.write(in.value, out.version), e
}

func keyModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return entry{} },
		Step: step,
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%+v -> %+v", input, output)
		},
	}
}

// forever is when a request returns of which nobody knows what became.
const forever = math.MaxInt64

// judgeMost is how long one history may take to be judged; longer is a failure, as everything is that was not decided.
const judgeMost = testkit.Patience

// judge is what is wrong with the history of one key; empty for nothing.
func judge(history []porcupine.Operation) string {
	switch porcupine.CheckOperationsTimeout(keyModel(), history, judgeMost) {
	case porcupine.Ok:
		return ""
	case porcupine.Illegal:
		return "no order of the requests explains the answers"
	}
	return "it was not decided in time"
}
