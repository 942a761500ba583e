package sessioncore

import (
	"bytes"
	"testing"

	"github.com/felixd/felixd/wire"
)

// What a stream holds is bounded: requests by the window, answers by OutLimit, a frame by its phase's limit.
func TestWhatAStreamHoldsIsBounded(t *testing.T) {
	t.Run("requests by the window", requestsByTheWindow)
	t.Run("answers by OutLimit", answersByOutLimit)
	t.Run("answers that wait for an older one, too", waitingAnswersByOutLimit)
	t.Run("a frame by its phase's limit", frameByItsPhasesLimit)
	t.Run("little while idle", littleWhileIdle)
}

func requestsByTheWindow(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	var tokens []Token
	for i := range window {
		if !s.Room() {
			t.Fatalf("no room for request %d of %d", i, window)
		}
		tokens = append(tokens, s.Frame(acked(uint64(i))).Token)
	}
	if s.Room() || s.Open() != window {
		t.Fatalf("there is room beyond the window, %d are open", s.Open())
	}
	s.Settle(tokens[1], Answer{}) // not the oldest: its answer waits, and so does its place
	if s.Room() {
		t.Error("there is room although the oldest request is open")
	}
	s.Settle(tokens[0], Answer{})
	if !s.Room() || s.Open() != window-2 {
		t.Errorf("room %v with %d open", s.Room(), s.Open())
	}
}

func get() Frame {
	return message(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "c", Key: "k"})
}

func answersByOutLimit(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	value := bytes.Repeat([]byte{1}, OutLimit/4)
	for s.Room() {
		s.Settle(s.Frame(get()).Token, Answer{Found: true, Value: value})
	}
	if max := OutLimit + 2*len(value); s.Pending() < OutLimit || s.Pending() > max {
		t.Errorf("%d bytes wait, want between %d and %d", s.Pending(), OutLimit, max)
	}
	if s.TakeOut(); s.Room() || s.Pending() != 0 {
		t.Errorf("room %v with %d bytes pending although they were only taken", s.Room(), s.Pending())
	}
	if s.Left(); !s.Room() || s.Owed() != 0 {
		t.Errorf("room %v with %d bytes owed after they left", s.Room(), s.Owed())
	}
}

// Answers that wait for an older request count as well: they are as much memory as those that may leave.
func waitingAnswersByOutLimit(t *testing.T) {
	s := NewStream(wire.RoleControl, everything(), 1<<10)
	letIn(t, s, todayOffered(), rights{})
	sent(t, s)
	oldest := s.Frame(acked(1)).Token
	value := bytes.Repeat([]byte{1}, OutLimit/4)
	taken := 0
	for s.Room() {
		if taken++; taken > 8 {
			t.Fatal("a stream whose oldest request is open keeps answers without bound")
		}
		s.Settle(s.Frame(get()).Token, Answer{Found: true, Value: value})
	}
	s.Settle(oldest, Answer{})
	if got := len(answers(t, s.Out())); got != taken+1 {
		t.Errorf("%d answers left, want %d", got, taken+1)
	}
	s.TakeOut()
	if s.Left(); !s.Room() {
		t.Error("no room after all answers left")
	}
	oldest = s.Frame(acked(2)).Token
	for s.Room() {
		s.Settle(s.Frame(get()).Token, Answer{Found: true, Value: value})
	}
	if s.Abandon("gone"); s.Owed() != 0 {
		t.Errorf("%d bytes are owed to a client that is gone", s.Owed())
	}
	s.Settle(oldest, Answer{})
	if s.Open() != 0 || s.Pending() != 0 || s.IsOpen(oldest) {
		t.Errorf("%d open and %d pending after Abandon and the last outcome", s.Open(), s.Pending())
	}
}

func littleWhileIdle(t *testing.T) {
	s := NewStream(wire.RoleControl, everything(), 1<<10)
	letIn(t, s, todayOffered(), rights{})
	var tokens []Token
	for i := range 500 {
		tokens = append(tokens, s.Frame(acked(uint64(i))).Token)
	}
	for _, token := range tokens {
		s.Settle(token, Answer{Refusal: full()})
	}
	s.Sent()
	if len(s.open.slots) > 16 || cap(s.out) > outKept {
		t.Errorf("%d slots and %d bytes are kept", len(s.open.slots), cap(s.out))
	}
}

// The region of a publish becomes the stored batch. What else was in the frame must not live as long as it.
func TestAStoredRegionKeepsLittleOfItsFrameAlive(t *testing.T) {
	trailing := unacked()
	trailing.Buffer = append(trailing.Buffer, make([]byte, 1<<20)...)
	keyed := published("hello", 1)
	keyed.Flags |= wire.FlagPublishKeyed
	keyed.Keyed, keyed.Key = true, make([]byte, wire.MaxKeyBytes)
	for name, f := range map[string]Frame{"a long key": binaryFrame(keyed), "bytes behind the last payload": trailing} {
		s := open(t, todayOffered(), rights{})
		q := s.Frame(f)
		if q.Do != Publish || string(q.Framed[RegionHeadroom:]) != string(published("hello", 1).Region) {
			t.Fatalf("%s: not taken as it came", name)
		}
		before := bytes.Clone(q.Framed[RegionHeadroom:])
		clear(f.Buffer)
		if !bytes.Equal(before, q.Framed[RegionHeadroom:]) {
			t.Errorf("%s: a region of %d bytes keeps a frame of %d alive", name, len(before), len(f.Buffer))
		}
	}
	// In the ordinary case nothing is copied.
	f := unacked()
	q := open(t, todayOffered(), rights{}).Frame(f)
	if &q.Framed[len(q.Framed)-1] != &f.Buffer[len(f.Buffer)-1] {
		t.Error("an ordinary publish was copied")
	}
}

func TestTheRoomInFrontOfARegionTakesAnEventHeader(t *testing.T) {
	least := &wire.Publish{Flags: wire.FlagPublishBatch, Count: 1, Region: wire.AppendPayload(nil, []byte("x")), Tenant: []byte(tenant)}
	rich := published("hello", 3)
	rich.Flags |= wire.FlagPublishAcked | wire.FlagPublishKeyed
	rich.RequestID, rich.Ack, rich.Keyed, rich.Key = 5, wire.AckPerMessage, true, []byte("key")
	for _, p := range []*wire.Publish{least, rich, published("", 0)} {
		q := open(t, todayOffered(), rights{}).Frame(binaryFrame(p))
		if q.Do != Publish {
			t.Fatalf("not taken: %+v", p)
		}
		region := bytes.Clone(q.Publish.Region)
		wire.PutSharedEventHeader(q.Framed, p.Count, len(region))
		h, err := wire.ParseHeader(q.Framed, wire.MaxPayload)
		if err != nil || int(h.Length) != len(q.Framed)-wire.HeaderSize {
			t.Fatalf("header %+v in front of %d bytes: %v", h, len(q.Framed), err)
		}
		e, err := wire.DecodeEventBatch(h.Flags, q.Framed[wire.HeaderSize:])
		if err != nil || e.Count != p.Count || !bytes.Equal(q.Framed[RegionHeadroom:], region) {
			t.Errorf("%d events of %d: %v", e.Count, p.Count, err)
		}
	}
}

// mission 204
func TestASecondBatchToTheSameStreamIsJudgedWithoutAllocating(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	f := acked(1)
	run := func() {
		q := s.Frame(f)
		s.Settle(q.Token, Answer{})
		s.Sent()
		s.Released()
	}
	run()
	if n := testing.AllocsPerRun(200, run); n != 0 {
		t.Errorf("%v allocations for a batch, want none", n)
	}
}
