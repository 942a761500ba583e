package effort

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTableIsSortedDescribedAndNeverShrinksWhenFull(t *testing.T) {
	table := Table()
	if !slices.IsSortedFunc(table, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the table is not sorted by name: Lookup would miss entries")
	}
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)
	for i, e := range table {
		if !name.MatchString(e.Name) {
			t.Errorf("%q: a name is lower case words joined by _, its unit last", e.Name)
		}
		if i > 0 && table[i-1].Name == e.Name {
			t.Errorf("%s is there twice", e.Name)
		}
		if e.Short < 1 || e.Full < e.Short {
			t.Errorf("%s: short %d and full %d: want 1 <= short <= full", e.Name, e.Short, e.Full)
		}
		if len(strings.Fields(e.What)) < 5 {
			t.Errorf("%s: %q does not say what is counted and where", e.Name, e.What)
		}
	}
}

func TestEffortIsChosenByTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		value string
		want  int
	}{{"", 1}, {"short", 1}, {"full", 20}} {
		t.Setenv(Variable, c.value)
		if got := Size("conformance_rounds"); got != c.want {
			t.Errorf("%s=%q: %d rounds, want %d", Variable, c.value, got, c.want)
		}
		if got, want := Full(), c.want == 20; got != want {
			t.Errorf("%s=%q: Full is %v, want %v", Variable, c.value, got, want)
		}
	}
}

func TestEveryNameOfTheTableIsFound(t *testing.T) {
	for _, effort := range []string{"short", "full"} {
		t.Setenv(Variable, effort)
		for _, e := range Table() {
			want := e.Short
			switch {
			case effort == "full":
				want = e.Full
			case Raced:
				want = raced(e)
			}
			if got, err := Lookup(e.Name); err != nil || got != want {
				t.Errorf("%s at %s: %d, %v; want %d", e.Name, effort, got, err, want)
			}
		}
	}
}

func TestUnknownCampaignPanics(t *testing.T) {
	mustPanic(t, "no_such_rounds", func() { Size("no_such_rounds") })
}

func TestMisspeltEffortPanics(t *testing.T) {
	t.Setenv(Variable, "ful")
	mustPanic(t, `"ful"`, func() { Size("fuzz_seconds") })
	mustPanic(t, `"ful"`, func() { Full() })
}

func TestConformanceAndPanicsKeepTheNumbersOfTheIssue(t *testing.T) {
	// The issue closes on 20 rounds and on 1,000 panics; CI runs the panics in full.
	for _, want := range []Entry{{Name: "conformance_rounds", Short: 1, Full: 20}, {Name: "lifecycle_panics", Short: 1000, Full: 1000}, {Name: "actor_panic_rounds", Short: 1000, Full: 1000}} {
		i := slices.IndexFunc(Table(), func(e Entry) bool { return e.Name == want.Name })
		if i < 0 {
			t.Errorf("%s is missing", want.Name)
			continue
		}
		if got := Table()[i]; got.Short != want.Short || got.Full != want.Full {
			t.Errorf("%s is %d/%d, want %d/%d", want.Name, got.Short, got.Full, want.Short, want.Full)
		}
	}
}

func mustPanic(t *testing.T, text string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		err, ok := recover().(error)
		if !ok || !strings.Contains(err.Error(), text) {
			t.Errorf("panic is %v, want an error that names %s", err, text)
		}
	}()
	f()
}

func TestUnderTheRaceDetectorAFifthIsLeftAndNeverNothing(t *testing.T) {
	for short, want := range []int{1: 1, 2: 1, 5: 1, 6: 2, 10: 2, 1000: 200} {
		if short > 0 && want > 0 && raced(Entry{Short: short}) != want {
			t.Errorf("of %d are left %d, want %d", short, raced(Entry{Short: short}), want)
		}
	}
}

// runner is a Runner that leaves goroutines behind which end a little later: more than can have ended of those that were there before it.
type runner struct{ ended atomic.Bool }

func (r *runner) Run() int {
	const many = 20
	var begun sync.WaitGroup
	begun.Add(many)
	end := make(chan struct{})
	for range many {
		go func() {
			begun.Done()
			<-end
		}()
	}
	begun.Wait()
	time.AfterFunc(20*time.Millisecond, func() {
		r.ended.Store(true)
		close(end)
	})
	return 7
}

func TestTestsAreOverWhenTheGoroutinesTheyLeftHaveEnded(t *testing.T) {
	var r runner
	if code := Settled(&r).Run(); code != 7 || !r.ended.Load() {
		t.Errorf("code %d, ended: %v", code, r.ended.Load())
	}
}
