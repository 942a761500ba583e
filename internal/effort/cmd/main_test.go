package main

import (
	"strings"
	"testing"

	"github.com/felixd/felixd/internal/effort"
)

func TestOneNamePrintsOneNumber(t *testing.T) {
	t.Setenv(effort.Variable, "full")
	var out strings.Builder
	if err := run([]string{"conformance_rounds"}, &out); err != nil || out.String() != "20\n" {
		t.Errorf("printed %q, %v; want 20", out.String(), err)
	}
}

func TestWithoutANameTheWholeTableIsPrinted(t *testing.T) {
	var out strings.Builder
	if err := run(nil, &out); err != nil {
		t.Fatal(err)
	}
	for _, e := range effort.Table() {
		if !strings.Contains(out.String(), "\n"+e.Name+" ") {
			t.Errorf("%s is not in the table:\n%s", e.Name, out.String())
		}
	}
}

func TestUnknownNameAndTooManyNamesAreRefused(t *testing.T) {
	for _, args := range [][]string{{"nothing"}, {"fuzz_seconds", "fuzz_seconds"}} {
		var out strings.Builder
		if err := run(args, &out); err == nil || out.String() != "" {
			t.Errorf("%v: printed %q, %v; want an error and nothing else", args, out.String(), err)
		}
	}
}
