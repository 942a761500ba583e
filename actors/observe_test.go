package actors

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// scrape returns every sample as name{label=value ...} value, counting observations for histograms.
func scrape(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			out[fmt.Sprintf("%s{%s}", f.GetName(), strings.Join(labels, " "))] = v
		}
	}
	return out
}

func TestMetricsCountByKindAndNeverByActor(t *testing.T) {
	reg := prometheus.NewRegistry()
	s, h, _ := newHandDriven(t, Options{Registerer: reg, Executors: 3})
	var refs []Ref[int]
	for i := range 3 {
		refs = append(refs, spawn(t, s, Spec[int]{Name: fmt.Sprint(i), Kind: "shard", Bounds: Bounds{DataItems: 2, DataBytes: 100, ControlItems: 5}, New: start(func(turn *Turn) {
			for _, m := range turn.Messages() {
				if m.(int) == 13 {
					panic("x")
				}
			}
		})}))
	}
	h.all()
	_ = refs[0].TrySend(1, 30)
	_ = refs[0].TrySend(2, 40)
	_ = refs[0].TrySend(3, 40)
	_ = refs[0].Complete(4)
	refs[0].Signal(Cell{})
	_ = refs[1].TrySend(5, 7)
	before := scrape(t, reg)
	for name, want := range map[string]float64{
		"felixd_actor_mailbox_items{kind=shard}":                        3,
		"felixd_actor_mailbox_bytes{kind=shard}":                        77,
		"felixd_actor_mailbox_refused_total{kind=shard reason=full}":    1,
		"felixd_actor_live{kind=shard}":                                 3,
		"felixd_actor_executors{}":                                      3,
		"felixd_actor_executors_busy{}":                                 0,
		"felixd_events_total{event=mailbox_full}":                       1,
		"felixd_actor_turns_total{kind=shard}":                          0,
		"felixd_actor_spawned_total{kind=shard}":                        3,
		"felixd_actor_stopped_total{kind=shard reason=stopped}":         0,
		"felixd_actor_messages_total{kind=shard lane=data}":             0,
		"felixd_actor_mailbox_refused_total{kind=shard reason=stopped}": 0,
	} {
		if got, ok := before[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	h.all()
	_ = refs[1].TrySend(13, 1)
	refs[2].Stop()
	_ = refs[2].TrySend(1, 1)
	h.all()
	after := scrape(t, reg)
	for name, want := range map[string]float64{
		"felixd_actor_mailbox_items{kind=shard}":                        0,
		"felixd_actor_mailbox_refused_total{kind=shard reason=stopped}": 1,
		"felixd_actor_live{kind=shard}":                                 1,
		"felixd_actor_turns_total{kind=shard}":                          3,
		"felixd_actor_turn_seconds{kind=shard}":                         2,
		"felixd_actor_messages_total{kind=shard lane=data}":             4,
		"felixd_actor_messages_total{kind=shard lane=control}":          1,
		"felixd_actor_messages_total{kind=shard lane=cell}":             1,
		"felixd_actor_stopped_total{kind=shard reason=stopped}":         1,
		"felixd_actor_stopped_total{kind=shard reason=panicked}":        1,
		"felixd_actor_panics_total{kind=shard}":                         1,
		"felixd_events_total{event=actor_panicked}":                     1,
		"felixd_events_total{event=actor_stopped}":                      2,
	} {
		if got, ok := after[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	mustPanic(t, "two systems on one registerer", func() { NewSystem(Options{Registerer: reg}) })
}

func TestEventsAreWrittenWithTheirLevelAndFields(t *testing.T) {
	var out bytes.Buffer
	sink := SlogSink(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, c := range []struct {
		event Event
		words string
	}{
		{ActorPanicked{Path: "shards/3", Kind: "shard", Panic: &PanicInfo{During: "turn", Text: "boom", Stack: []byte("st")}}, "level=ERROR msg=actor_panicked actor=shards/3 kind=shard during=turn panic=boom stack=st"},
		{ActorStopped{Path: "shards/3", Kind: "shard", Reason: Panicked, Unstepped: 2, Unknown: 1}, "level=DEBUG msg=actor_stopped actor=shards/3 kind=shard reason=panicked unstepped=2 unknown=1"},
		{MailboxFull{Full: FullError{Path: "a", Items: 1, Bytes: 2, LimitItems: 3, LimitBytes: 4}, Kind: "k", Refused: 9}, "level=WARN msg=mailbox_full actor=a kind=k items=1 bytes=2 limit_items=3 limit_bytes=4 refused=9"},
	} {
		out.Reset()
		sink.Emit(c.event)
		if !strings.Contains(out.String(), c.words) {
			t.Errorf("got %swant %s", out.String(), c.words)
		}
	}
}

// brokenSink panics at every event.
type brokenSink struct{}

func (brokenSink) Emit(Event) { panic("sink") }

func TestASinkThatPanicsCostsOnlyItsEvents(t *testing.T) {
	s := newSystem(t, Options{Events: brokenSink{}})
	ref := spawn(t, s, Spec[any]{Name: "a", Kind: "a", New: start(func(*Turn) { panic("x") })})
	if end := wait(t, s.Watch(ref), "end"); end.Reason != Panicked {
		t.Errorf("%+v", end)
	}
}

type badStringer struct{}

func (badStringer) String() string { panic("no") }

func TestPanicTextIsBoundedAndAlwaysThere(t *testing.T) {
	if got := panicText(strings.Repeat("x", 1<<20)); len(got) != panicTextMax {
		t.Errorf("%d bytes", len(got))
	}
	for _, v := range []any{badStringer{}, fmt.Errorf("e"), 3} {
		if panicText(v) == "" {
			t.Errorf("no text for %T", v)
		}
	}
}

func TestNamesOfReasonsAndLifecycles(t *testing.T) {
	if got := fmt.Sprint(Orderly, Panicked, None, Started, Stopping, Stopped, lifecycleEnd); got != "stopped panicked none started stopping stopped unknown" {
		t.Error(got)
	}
}
