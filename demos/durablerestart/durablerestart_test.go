package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/effort"
)

func TestMain(m *testing.M) {
	if code, asked := durable().Main(); asked {
		os.Exit(code)
	}
	goleak.VerifyTestMain(effort.Settled(m))
}

// mission 282
func TestTheLedgerBalancesAfterKills(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--kills", "2", "--between", "100ms", "--publishers", "2"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, &out, &errs)
	}
	for _, line := range []string{"kill  2:", "of them missing              0", "each once and in order"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not in\n%s", line, &out)
		}
	}
}

func TestALedgerThatDoesNotBalanceIsSaidSo(t *testing.T) {
	whole := report{acknowledged: 9, there: 9, seen: 9}
	if !whole.balanced() {
		t.Error("a whole one does not balance")
	}
	for name, broken := range map[string]func(*report){
		"missing": func(r *report) { r.missing = 1 }, "moved": func(r *report) { r.moved = 1 }, "twice": func(r *report) { r.twice = 1 },
		"broken": func(r *report) { r.broken = 1 }, "subscriber": func(r *report) { r.wrong = "it ended" }, "nothing": func(r *report) { r.acknowledged = 0 },
		"unseen": func(r *report) { r.seen = 8 },
	} {
		r := whole
		if broken(&r); r.balanced() {
			t.Errorf("%s: it balances", name)
		}
	}
}

func TestWrongFlagsExitWithTwo(t *testing.T) {
	for _, args := range [][]string{{"--kills", "0"}, {"--publishers", "65"}, {"--nothing"}, {"more"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, said %q", args, code, &errs)
		}
	}
}
