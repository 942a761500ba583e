package sessionactor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func newGroupPage() groupPage { return groupPage{payload: rangePayload, encoded: rangeEncoded} }

// What retention removed and what is not for clients is not found; everything else is, in the order it was asked for.
func TestOnlyRecordsForClientsAreFoundForAGroup(t *testing.T) {
	for step := range 4 { // how many batches one read returns at most
		w := history(step)
		w.cut = 11
		p := newGroupPage()
		asked := []id.Offset{16, 10, 11, 12, 13, 14, 15, 17}
		if err := p.read(context.Background(), w, asked); err != nil {
			t.Fatal(err)
		}
		if want := []bool{true, false, true, true, false, true, true, false}; !slices.Equal(p.found, want) {
			t.Errorf("step %d: found %v, want %v", step, p.found, want)
		}
		var got []string
		for _, r := range p.records {
			got = append(got, fmt.Sprintf("%d%s", r.Offset, r.Payload))
		}
		if s := strings.Join(got, " "); s != "16f 11b 12c 14d 15e" {
			t.Errorf("step %d: %s", step, s)
		}
	}
}

func TestAReadForAGroupStopsWhereItsAnswerIsFull(t *testing.T) {
	w := history(0)
	p := newGroupPage()
	p.payload = 2
	if err := p.read(context.Background(), w, []id.Offset{10, 11, 12}); err != nil || len(p.found) != 2 || len(p.records) != 2 {
		t.Errorf("%v, found %v", err, p.found)
	}
	p = newGroupPage()
	p.payload = 0 // the first always fits
	if err := p.read(context.Background(), w, []id.Offset{10, 11}); err != nil || len(p.found) != 1 {
		t.Errorf("%v, found %v", err, p.found)
	}
}

func TestWhatWasReadForAGroupBeforeAnErrorIsGood(t *testing.T) {
	w := history(1)
	w.err, w.from = errors.New("bad sector"), 14
	p := newGroupPage()
	if err := p.read(context.Background(), w, []id.Offset{10, 11, 14}); err != nil || len(p.found) != 2 {
		t.Errorf("%v, found %v", err, p.found)
	}
	p = newGroupPage()
	if err := p.read(context.Background(), w, []id.Offset{14}); !errors.Is(err, w.err) {
		t.Errorf("%v", err)
	}
	p = newGroupPage()
	if err := p.read(context.Background(), history(0), []id.Offset{99}); err == nil {
		t.Error("an offset past the end was read")
	}
}

// A record that no answer can hold becomes a dead letter when a poll comes to it; those behind it are handed out.
func TestAPollPassesARecordThatFitsNoAnswer(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	c := x.connect()
	l, writer := dial(t, c, today()), dial(t, c, today())
	writer.publish("orders", strings.Repeat("x", rangeEncoded*3/4))
	writer.publish("orders", "next")
	got := l.poll(pollFor(2, 10_000))
	if len(got) != 1 || got[0].Offset != 1 || string(got[0].Payload) != "next" {
		t.Fatalf("%d records", len(got))
	}
	eventually(t, "it is a dead letter", func() bool {
		m, ok := l.ask(&wire.GroupDeadLetters{GroupTarget: pollFor(1, 0).GroupTarget}).message.(*wire.GroupDeadLetterList)
		return ok && slices.Equal(m.Offsets, []id.Offset{0})
	})
}

// A record that no answer can hold ends the page that would begin with it, and one before it.
func TestARecordThatFitsNoAnswerIsNotHandedOut(t *testing.T) {
	w := &written{}
	w.add(batch.Records, "a", strings.Repeat("x", rangeEncoded*3/4))
	p := newGroupPage()
	if err := p.read(context.Background(), w, []id.Offset{10, 11}); err != nil || len(p.found) != 1 {
		t.Errorf("%v, found %v", err, p.found)
	}
	p = newGroupPage()
	var long *recordTooLongError
	if err := p.read(context.Background(), w, []id.Offset{11}); !errors.As(err, &long) || long.offset != 11 {
		t.Errorf("%v", err)
	}
}
