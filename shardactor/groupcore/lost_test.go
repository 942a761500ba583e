package groupcore

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/wire/id"
	"pgregory.net/rapid"
)

// A note is believed of the records that it was written of and of no others, whatever is lost, and whenever the logs of groups can be read.
func TestANoteIsBelievedOfTheRecordsThatItWasWrittenOf(t *testing.T) {
	type note struct {
		log       Log
		at, reach id.Offset
		truth     id.Offset // where the records end that it was written of and that are still those
	}
	rapid.Check(t, func(t *rapid.T) {
		var kept, lost Lost // on the device, and in memory
		var tails [logCount]id.Offset
		var notes []note
		each := func(visit func(Log, id.Offset, id.Offset)) {
			for _, n := range notes {
				visit(n.log, n.at, n.reach)
			}
		}
		end, began, read := id.Offset(0), id.Offset(0), true
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"publish", "note", "note", "cut", "read", "shorter"}).Draw(t, "step") {
			case "publish":
				end += id.Offset(rapid.IntRange(1, 5).Draw(t, "records"))
			case "note":
				if !read {
					continue
				}
				n := note{log: Log(rapid.IntRange(0, int(logCount)-1).Draw(t, "log")), reach: id.Offset(rapid.IntRange(0, int(end)).Draw(t, "reach"))}
				n.at, n.truth = tails[n.log], n.reach
				tails[n.log]++
				if len(notes) > 0 && rapid.Bool().Draw(t, "again") { // in the place of another
					i := rapid.IntRange(0, len(notes)-1).Draw(t, "which")
					notes = slices.Delete(notes, i, i+1)
				}
				notes = append(notes, n)
			case "cut":
				end = id.Offset(rapid.IntRange(0, int(end)).Draw(t, "end"))
				for i := range notes {
					notes[i].truth = min(notes[i].truth, end)
				}
				began, lost = end, kept
				if log := rapid.IntRange(0, int(logCount)).Draw(t, "a log of groups is cut too"); log < int(logCount) {
					tails[log] = id.Offset(rapid.IntRange(0, int(tails[log])).Draw(t, "tail"))
					notes = slices.DeleteFunc(notes, func(n note) bool { return n.log == Log(log) && n.at >= tails[log] })
				}
				if read = rapid.Bool().Draw(t, "readable"); read {
					lost = lost.Read(began, tails, each)
				} else {
					lost = lost.Unread(began)
				}
				kept = lost
			case "read":
				if !read {
					read, lost = true, lost.Read(began, tails, each)
					kept = lost
				}
			case "shorter": // somebody has cut a log of groups
				if read {
					continue
				}
				log := Log(rapid.IntRange(0, int(logCount)-1).Draw(t, "log"))
				tails[log] = id.Offset(rapid.IntRange(0, int(tails[log])).Draw(t, "tail"))
				notes = slices.DeleteFunc(notes, func(n note) bool { return n.log == log && n.at >= tails[log] })
			}
			if err := lost.check(); err != nil {
				t.Fatal(err)
			}
			for _, n := range notes {
				if got := min(n.reach, lost.Until(n.log, n.at)); read && got != n.truth {
					t.Fatalf("of %+v everything below %d is believed: %+v", n, got, lost)
				}
			}
		}
	})
}

// However often ends are lost without anybody asking for a group, what is kept of them is bounded, and no note is believed of other records.
func TestWhatIsKeptOfLostEndsIsBounded(t *testing.T) {
	for _, needed := range []bool{true, false} {
		type note struct{ at, reach, truth id.Offset }
		var l Lost
		var notes []note
		var tails [logCount]id.Offset
		each := func(visit func(Log, id.Offset, id.Offset)) {
			for _, n := range notes {
				visit(LogCursors, n.at, n.reach)
			}
		}
		for i := range id.Offset(3 * MaxLostEnds) {
			if !needed && len(notes) > 3 {
				notes = notes[1:] // written anew
			}
			notes = append(notes, note{tails[LogCursors], 10*i + 5, 10*i + 3})
			tails[LogCursors]++
			before := l
			if l = l.Read(10*i+3, tails, each); slices.Equal(l, before) {
				t.Fatal("an end that was lost is not kept")
			}
			if err := l.check(); err != nil {
				t.Fatal(err)
			}
			for _, n := range notes {
				if got := min(n.reach, l.Until(LogCursors, n.at)); got > n.truth || !needed && got != n.truth {
					t.Fatalf("of %+v everything below %d is believed: %+v", n, got, l)
				}
			}
		}
		if most := l.Unread(1 << 40); len(most) > MaxLostEnds || most.Until(LogCursors, tails[LogCursors]) != 1<<40 {
			t.Fatalf("%d ends, %+v", len(most), most)
		}
	}
}

// Workers settle by offset, also late. What they have of a record that was lost is not taken for the one in its place before that was handed out.
func TestALateSettlementOfALostRecordDoesNotFinishTheOneInItsPlace(t *testing.T) {
	for what, cut := range map[string]func(s *lostShell) *State{
		"noted": func(s *lostShell) *State { return s.state() },
		"not noted": func(s *lostShell) *State { // the notes are lost too, and only the end of the log is known
			first := AppendValue(nil, &Entry{Kind: KindPosition, Epoch: 1, Born: 1})
			s.tables[LogCursors] = map[string][]byte{string(AppendKey(nil, "g", KindPosition, 0)): first}
			st := s.state()
			st.Before(5)
			return st
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := &lostShell{shell: newShell(small(), 9), places: [logCount]map[string]place{{}, {}}}
			s.records(Poll{Max: 9})
			s.ack(7)
			s.look()
			s.lost = s.lost.Read(5, s.tails, s.notes)
			s.upFrom(cut(s))
			for _, o := range []id.Offset{6, 7} {
				expect(t, "ack", refused(s.ack(o)), "stale_claim retry")
				expect(t, "give up", refused(s.do(GiveUp{Ask: s.ask(), Offset: o}).Refusal), "stale_claim retry")
			}
			expect(t, "an ack of a record that is still there", refused(s.ack(4)), "ok")
			var list []Handed
			for more := s.records(Poll{Max: 9}); len(more) > 0; more = s.records(Poll{Max: 9}) {
				list = append(list, more...)
			}
			expect(t, "handed out", len(list), 8)
			expect(t, "ack", refused(s.ack(7)), "ok")
		})
	}
}

// What was cut of a group's notes is written anew when it is brought up: from then on nothing has to be known of the end that was lost.
func TestAGroupWritesAnewWhatWasCutOfItsNotes(t *testing.T) {
	s := &lostShell{shell: newShell(small(), 9), places: [logCount]map[string]place{{}, {}}}
	s.records(Poll{Max: 9})
	for _, o := range []id.Offset{0, 1, 3, 5, 6, 8} {
		s.ack(o)
	}
	s.do(GiveUp{Ask: s.ask(), Offset: 7})
	s.look()
	s.lost = s.lost.Read(6, s.tails, s.notes)
	s.up()
	s.wait(time.Minute)
	s.look()
	s.notes(func(log Log, at, reach id.Offset) {
		if at < s.lost[0].Before[log] && reach > 6 {
			t.Errorf("log %d still says something up to %d, which is lost from 6 on", log, reach)
		}
	})
	s.lost = nil
	s.up()
	expect(t, "group", s.core.Info(), Info{Exists: true, Cursor: 2, Tail: 9, Owed: 2})
}

// lostShell is a shell whose log may lose its end.
type lostShell struct {
	*shell
	lost   Lost
	tails  [logCount]id.Offset
	places [logCount]map[string]place // of what was looked at
	opened struct {                   // the log of cursors when it was
		table  map[string][]byte
		places map[string]place
		tail   id.Offset
	}
}

// place is where a value stands in its log.
type place struct {
	value *byte
	at    id.Offset
}

// look gives a place to what was written since the last look.
func (s *lostShell) look() {
	for i, table := range s.tables {
		for _, k := range slices.Sorted(maps.Keys(table)) {
			if v := &table[k][0]; s.places[i][k].value != v {
				s.places[i][k] = place{v, s.tails[i]}
				s.tails[i]++
			}
		}
	}
}

func (s *lostShell) notes(visit func(Log, id.Offset, id.Offset)) {
	for i, table := range s.tables {
		for k, v := range table {
			_, e, err := DecodeEntry([]byte(k), v)
			if err != nil {
				panic(err)
			}
			visit(Log(i), s.places[i][k].at, e.Reach())
		}
	}
}

// up brings the group up as its logs say it is.
func (s *lostShell) up() { s.upFrom(s.state()) }

// state is what the logs say, as far as it is to be believed.
func (s *lostShell) state() *State {
	s.look()
	s.opened.table, s.opened.places, s.opened.tail = maps.Clone(s.tables[LogCursors]), maps.Clone(s.places[LogCursors]), s.tails[LogCursors]
	st := NewState(s.opts.Group)
	for i, table := range s.tables {
		for k, v := range table {
			if err := st.AddUntil([]byte(k), v, s.lost.Until(Log(i), s.places[i][k].at)); err != nil {
				panic(err)
			}
		}
	}
	return st
}

func (s *lostShell) upFrom(st *State) {
	s.writes, s.fetches, s.wakeAt, s.idle = [logCount]*Persist{}, nil, never, false
	s.core = New(s.opts, s.now, Loaded{State: st, Base: s.base, Tail: Tail{End: s.end, Committed: s.end}})
	s.take()
}

// stored folds those of the writes on their way that keep says, and loses the others.
func (s *lostShell) stored(keep [logCount]bool) {
	for i, w := range s.writes {
		if w != nil && keep[i] {
			s.fold(w)
		}
	}
	s.writes = [logCount]*Persist{}
	s.look()
}

// The end of a stream's log is lost, again and again, at any moment of a group's work and of the writing of its notes. No record is finished or
// listed because of what was noted of another that had its offset before, and what was finished stays so while its notes are there.
func TestNoRecordIsFinishedByTheNotesOfALostOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &lostShell{shell: newShell(small(), 6), places: [logCount]map[string]place{{}, {}}}
		s.up()
		finished, listed, maybe := map[id.Offset]bool{}, map[id.Offset]bool{}, map[id.Offset]bool{} // of the records that are there now
		keep := func() [logCount]bool {
			return [logCount]bool{rapid.Bool().Draw(t, "cursors are stored"), rapid.Bool().Draw(t, "dead letters are stored")}
		}
		settle := func(o id.Offset) {
			how := rapid.SampledFrom([]string{"ack", "ack", "give up", "nack", "nothing"}).Draw(t, "settle")
			maybe[o] = maybe[o] || s.patient && (how == "ack" || how == "give up")
			switch how {
			case "ack":
				if a := s.do(&Ack{Ask: s.ask(), Offset: o}); a != nil && a.Refusal == nil {
					finished[o], listed[o] = true, false
				}
			case "give up":
				if a := s.do(GiveUp{Ask: s.ask(), Offset: o}); a != nil && a.Refusal == nil {
					listed[o] = true
				}
			case "nack":
				s.do(Nack{Ask: s.ask(), Conn: 1, Offset: o})
			}
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"work", "work", "publish", "kill", "cut", "wait"}).Draw(t, "step") {
			case "work":
				list := s.records(Poll{Max: uint32(rapid.IntRange(1, 4).Draw(t, "max"))})
				s.patient = rapid.IntRange(0, 4).Draw(t, "patient") == 0
				for _, h := range list {
					if finished[h.Offset] && !maybe[h.Offset] {
						t.Fatalf("offset %d was finished and is handed out again", h.Offset)
					}
					settle(h.Offset)
				}
				if s.patient { // what was asked now may be lost, and what was written on its way to that
					s.patient = false
					s.stored(keep())
					s.up()
				}
			case "publish":
				s.publish(rapid.IntRange(1, 3).Draw(t, "records"))
			case "wait":
				s.wait(time.Minute)
			case "kill":
				s.patient = rapid.Bool().Draw(t, "while it is brought up")
				s.up()
				s.stored(keep())
				s.patient = false
				s.up()
			case "cut":
				s.look()
				s.end = id.Offset(rapid.IntRange(0, int(s.end)).Draw(t, "end"))
				for _, m := range []map[id.Offset]bool{finished, listed, maybe} {
					maps.DeleteFunc(m, func(o id.Offset, _ bool) bool { return o >= s.end })
				}
				if rapid.Bool().Draw(t, "cursors are lost") { // since they were opened
					o := &s.opened
					s.tables[LogCursors], s.places[LogCursors], s.tails[LogCursors] = maps.Clone(o.table), maps.Clone(o.places), o.tail
					for o := range finished {
						maybe[o] = true
					}
					for o := range listed {
						maybe[o] = true
					}
				}
				began := s.end
				if rapid.Bool().Draw(t, "readable") {
					s.lost = s.lost.Read(began, s.tails, s.notes)
				} else {
					s.lost = s.lost.Unread(began)
					s.end += id.Offset(rapid.IntRange(0, 4).Draw(t, "records before it is readable"))
					s.lost = s.lost.Read(began, s.tails, s.notes)
				}
				s.end += id.Offset(rapid.IntRange(0, 4).Draw(t, "records before it is asked for"))
				s.up()
			}
			for _, o := range s.deads() {
				if !listed[o] && !maybe[o] {
					t.Fatalf("offset %d is a dead letter, and nobody gave it up", o)
				}
			}
		}
		s.up()
		got, dead := map[id.Offset]bool{}, map[id.Offset]bool{}
		for _, o := range s.deads() {
			dead[o] = true
		}
		for empty := 0; empty < 3; empty++ {
			s.wait(time.Minute)
			for _, h := range s.records(Poll{Max: 100}) {
				got[h.Offset], empty = true, 0
				if f := s.ack(h.Offset); f != nil {
					t.Fatal(f)
				}
			}
		}
		for o := range s.end {
			switch {
			case maybe[o]:
			case finished[o] && got[o]:
				t.Fatalf("offset %d was finished and is handed out again", o)
			case listed[o] && !dead[o] && !got[o] || !finished[o] && !listed[o] && !got[o]:
				t.Fatalf("offset %d is lost for the group; finished %v, listed %v, dead %v, got %v, %+v", o, finished, listed, dead, got, s.lost)
			}
		}
	})
}
