package actors

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheListIsSortedPagedAndShowsWhatWasDone(t *testing.T) {
	s, h, clock := newHandDriven(t, Options{})
	var want []string
	for i := range 700 {
		name := fmt.Sprintf("shards-%d", i*7919%700)
		want = append(want, name)
		spawn(t, s, Spec[int]{Name: name, Kind: []string{"a", "b"}[i%2], Tenant: []string{"", "t1"}[i%2], Bounds: roomy(), New: start(func(*Turn) {})})
	}
	slices.Sort(want)
	h.all()
	for _, limit := range []int{1, 7, 100, FaultListMax} {
		var got []string
		for after, more := "", true; more; {
			page, rest, err := s.Faults().List(after, limit)
			if err != nil || len(page) == 0 || len(page) > limit {
				t.Fatalf("limit %d after %q: %d actors, %v", limit, after, len(page), err)
			}
			for _, a := range page {
				got = append(got, a.Path)
			}
			after, more = page[len(page)-1].Path, rest
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %d of %d paths, or not in order", limit, len(got), len(want))
		}
	}
	if page, more, err := s.Faults().List("zzz", 10); len(page) != 0 || more || err != nil {
		t.Errorf("behind the last: %v %v %v", page, more, err)
	}
	ref := spawn(t, s, Spec[int]{Name: "x", Kind: "k", Tenant: "t9", Bounds: roomy(), New: start(func(*Turn) {})})
	h.all()
	_ = s.Faults().Pause("x", 3*time.Second)
	_ = s.Faults().Slow("x", 20*time.Millisecond, 9*time.Second)
	_ = ref.TrySend(1, 30)
	clock.Advance(time.Second)
	show := func() ActorInfo {
		page, _, err := s.Faults().List("shards-", FaultListMax)
		for err == nil && page[len(page)-1].Path != "x" {
			page, _, err = s.Faults().List(page[len(page)-1].Path, FaultListMax)
		}
		if err != nil {
			t.Fatal(err)
		}
		return page[len(page)-1]
	}
	full := ActorInfo{Path: "x", ID: ref.ID(), Kind: "k", Tenant: "t9", MailboxItems: 1, MailboxBytes: 30, PausedFor: 2 * time.Second, SlowBy: 20 * time.Millisecond, SlowFor: 8 * time.Second}
	if got := show(); got != full {
		t.Errorf("got  %+v\nwant %+v", got, full)
	}
	ref.Stop()
	if got := show(); !got.Stopping || got.PausedFor != 0 {
		t.Errorf("an actor whose end is decided: %+v", got)
	}
}

func TestAnUnknownPathNamesTheOneThatWasMeant(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	for _, name := range []string{"shards/3", "shards/31", "sessions/3", "members"} {
		spawn(t, s, Spec[int]{Name: name, Kind: "a", New: start(func(*Turn) {})})
	}
	h.all()
	for path, near := range map[string]string{"shard/3": "shards/3", "shards/": "shards/3", "member": "members", "session/3": "sessions/3", "zebra": "", "": ""} {
		var unknown *UnknownActorError
		err := s.Faults().Pause(path, time.Second)
		if !errors.As(err, &unknown) || !errors.Is(err, ErrUnknownActor) || unknown.Path != path || unknown.Near != near {
			t.Errorf("%q: %v, want %q named", path, err, near)
		}
		if err != nil && near != "" && !strings.Contains(err.Error(), "did you mean") {
			t.Errorf("the text does not ask: %v", err)
		}
	}
}

func TestDurationsAndLimitsOutOfRangeAreTypedAndChangeNothing(t *testing.T) {
	events := &recorder{}
	s, h, clock := newHandDriven(t, Options{Events: events})
	ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Bounds: roomy(), New: start(func(*Turn) {})})
	h.all()
	f := s.Faults()
	var errs []error
	for _, d := range []time.Duration{0, -1, FaultTimeMax + 1, math.MinInt64, math.MaxInt64} {
		errs = append(errs, f.Pause("a", d), f.Slow("a", d, time.Second), f.Slow("a", time.Second, d))
	}
	for _, n := range []int{0, -1, FaultListMax + 1, math.MinInt, math.MaxInt} {
		_, _, err := f.List("", n)
		errs = append(errs, err)
	}
	for i, err := range errs {
		var bad *BadFaultError
		if !errors.As(err, &bad) || !errors.Is(err, ErrBadFault) || bad.Got == "" || !strings.Contains(err.Error(), "use ") {
			t.Errorf("case %d: %v", i, err)
		}
	}
	if ref.b.fault != nil || clock.Pending() != 0 || len(events.list) != 0 {
		t.Error("a refused fault left something behind")
	}
	ref.Stop()
	if err := f.Crash("a"); !errors.Is(err, ErrStopped) {
		t.Errorf("an actor that stops: %v", err)
	}
	if err := f.Heal("a"); !errors.Is(err, ErrStopped) || len(events.list) != 0 {
		t.Errorf("healing an actor that stops: %v, events %v", err, events.list)
	}
}

func TestEachUseIsAnEventWithItsFields(t *testing.T) {
	events := &recorder{}
	s, h, _ := newHandDriven(t, Options{Events: events})
	spawn(t, s, Spec[int]{Name: "a", Kind: "k", New: start(func(*Turn) {})})
	h.all()
	f := s.Faults()
	if err := errors.Join(f.Pause("a", time.Second), f.Slow("a", time.Millisecond, time.Minute), f.Heal("a"), f.Crash("a")); err != nil {
		t.Fatal(err)
	}
	want := []Event{
		FaultInjected{Path: "a", Kind: "k", Do: FaultPause, For: time.Second}, FaultInjected{Path: "a", Kind: "k", Do: FaultSlow, By: time.Millisecond, For: time.Minute},
		FaultInjected{Path: "a", Kind: "k", Do: FaultHeal}, FaultInjected{Path: "a", Kind: "k", Do: FaultCrash},
	}
	if got := events.named("fault_injected"); !slices.Equal(got, want) {
		t.Errorf("events\n got %+v\nwant %+v", got, want)
	}
}
