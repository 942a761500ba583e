package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/wire/id"
)

func TestMain(m *testing.M) {
	if code, asked := durable().Main(); asked {
		os.Exit(code)
	}
	goleak.VerifyTestMain(effort.Settled(m))
}

// mission 272, mission 282
func TestTheLedgerBalancesAfterKills(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--jobs", "1000", "--kills", "1", "--workers", "3"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, &out, &errs)
	}
	for _, line := range []string{"kill  1:", "dead letters                        20", "neither                              0", "1000 of 1000 are worked off, 0 dead letters are left"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not in\n%s", line, &out)
		}
	}
}

func TestALedgerThatDoesNotBalanceIsSaidSo(t *testing.T) {
	whole := report{jobs: 9, worked: 8, dead: []id.Offset{3}, left: client.GroupInfo{Committed: 9, HasCommitted: true, Tail: 9, DeadLetters: 1}}
	if !whole.balanced() {
		t.Error("a whole one does not balance")
	}
	for name, broken := range map[string]func(*report){
		"lost": func(r *report) { r.lost = 1 }, "both": func(r *report) { r.both = 1 }, "nothing": func(r *report) { r.jobs = 0 },
		"unworked": func(r *report) { r.worked = 7 }, "wrong": func(r *report) { r.wrong = "content" }, "behind": func(r *report) { r.left.Tail = 10 },
		"in flight": func(r *report) { r.left.InFlight = 1 }, "owed": func(r *report) { r.left.Owed = 1 }, "uncounted": func(r *report) { r.left.DeadLetters = 2 },
	} {
		r := whole
		if broken(&r); r.balanced() {
			t.Errorf("%s: it balances", name)
		}
	}
}

func TestWrongFlagsExitWithTwo(t *testing.T) {
	for _, args := range [][]string{{"--kills", "0"}, {"--workers", "65"}, {"--jobs", "1"}, {"--nothing"}, {"more"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, said %q", args, code, &errs)
		}
	}
}
