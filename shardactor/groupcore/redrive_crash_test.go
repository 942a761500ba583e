package groupcore

import (
	"testing"

	"github.com/felixd/felixd/wire/id"
)

// matrix I7, I8: a crash between the listing of a record and its end leaves it listed and owed with all its deliveries; a redrive begins again
// all the same.
func TestARedriveAfterACrashBetweenListingAndEndBeginsAgain(t *testing.T) {
	state := NewState("g")
	for _, e := range []Entry{
		{Kind: KindPosition, Epoch: 1, Born: 1, Cursor: 0},
		{Kind: KindNumber, Epoch: 1, Offset: 0, Number: 5, Failures: 5},
		{Kind: KindDead, Epoch: 1, Offset: 0},
	} {
		if err := state.Add(AppendKey(nil, "g", e.Kind, e.Offset), AppendValue(nil, &e)); err != nil {
			t.Fatal(err)
		}
	}
	opts := small()
	opts.Group = "g"
	c := New(opts, 0, Loaded{State: state, Tail: Tail{End: 1, Committed: 1}})
	var handed []Handed
	c.Step(0, Redrive{Offset: 0})
	c.Step(0, &Poll{Conn: 1, Max: 1})
	for effects := c.Take(); len(effects) > 0; effects = c.Take() {
		for _, e := range effects {
			switch e := e.(type) {
			case *Persist:
				c.Step(0, Persisted{Seq: e.Seq})
			case *Fetch:
				c.Step(0, Read{Poll: e.Poll, Found: []bool{true}})
			case *Deliver:
				handed = append(handed, e.Records...)
			}
		}
	}
	if len(handed) != 1 || handed[0].Offset != id.Offset(0) || handed[0].Attempts != 1 {
		t.Fatalf("%+v", handed)
	}
	if err := c.CheckAll(); err != nil {
		t.Fatal(err)
	}
}

// A redrive begins again with a record's attempts, also where one record of the log still counts its deliveries together with those of others,
// and a crash comes before the next.
func TestARedriveBeginsAgainWithAttemptsAlsoAfterACrash(t *testing.T) {
	s := newShell(small(), 2)
	s.records(Poll{Max: 1})
	expect(t, "give up", refused(s.do(GiveUp{Ask: s.ask(), Offset: 0}).Refusal), "ok")
	s.seek(at(0), false)
	expect(t, "both at once", told(s.records(Poll{Max: 2})), "0:1 1:1")
	expect(t, "nack", refused(s.nack(0, 1)), "ok")
	expect(t, "redrive", refused(s.do(Redrive{Ask: s.ask(), Offset: 0}).Refusal), "ok")
	s.crash([logCount]bool{true, true})
	expect(t, "after the crash", told(s.records(Poll{Max: 1})), "0:1")
}
