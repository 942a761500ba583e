package bench

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
)

func TestARatioMayBeToWhatTwoCasesMake(t *testing.T) {
	var order []string
	e := scriptedExperiment(&order)
	e.Cases = append(e.Cases, scripted("third", &order, perSecond(20, 10), perSecond(20, 20), perSecond(20, 30)))
	e.Comparisons = []Comparison{{Label: "sum", Figure: P50, Of: 0, By: 1, Target: 1, AtMost: true, With: &Joint{
		Case: 2, Label: "(raw + 2 x third)", Make: func(by, with float64) float64 { return by + 2*with },
	}}}
	r, err := e.Measure(t.Context(), 3, brief(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{100.0 / 70, 300.0 / 140, 200.0 / 460}
	if got := r.Ratios[0]; !slices.Equal(got.Rounds, want) || got.By != "(raw + 2 x third)" || got.Met == nil || *got.Met {
		t.Errorf("%+v, want %v", got, want)
	}
}

func TestDurableRecordsAreMeasuredBesideDiskAndEcho(t *testing.T) {
	f, raw, folder := newFelixd(t, testbroker.Options{Durable: true}), newRaw(t), t.TempDir()
	e := DurableExperiment(f, raw, Disk(folder), DurableSpec{Name: "durable", Stream: "eight", Payload: 64, Producers: 4, Conns: 1, Target: 1})
	r := measured(t, e, nil)
	if got := r.Ratios[0]; got.Of != "felixd" || got.By != "(bare write and sync + 1.3 x raw echo)" || got.Met == nil {
		t.Errorf("compared %+v", got)
	}
	lone := measured(t, DurableExperiment(f, raw, Disk(folder), DurableSpec{Name: "lone", Stream: "eight", Payload: 64, Producers: 1, Conns: 1, Target: 1}), nil)
	if len(lone.Ratios) != 2 || lone.Ratios[1].By != "(raw echo, then bare write and sync + 0.3 x raw echo)" {
		t.Errorf("compared %+v", lone.Ratios)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if alone := DurableExperiment(f, nil, Disk(folder), DurableSpec{Producers: 1, Conns: 1}); len(alone.Cases) != 2 || len(alone.Comparisons) != 0 {
		t.Errorf("without a raw peer: %d cases, %d comparisons", len(alone.Cases), len(alone.Comparisons))
	}
}

func TestTheRateOfADurableStreamIsComparedWithTheLesserOfMemoryAndDisk(t *testing.T) {
	f, ctx := newFelixd(t, testbroker.Options{Durable: true}), newContext(t)
	spec := DurableRateSpec{PublishSpec: PublishSpec{
		Name: "rate", Stream: "eight", Shape: Shape{Payload: 64, Batch: 4}, Acked: true, InFlight: 8, Streams: 2, Conns: 1, Generator: ByClient, Encoding: Binary, Target: 0.8,
	}, InMemory: "one", FsyncInterval: time.Hour}
	spec.Streams = 1
	e, err := DurableRateExperiment(ctx, f, Disk(t.TempDir()), spec)
	r := measured(t, e, err)
	rate := func(i int) float64 { return r.Cases[i].Rounds[0].RecordsPerSecond }
	if got, want := r.Ratios[0].Rounds[0], rate(0)/min(rate(1), rate(2)); got != want {
		t.Errorf("the ratio is %v, want %v", got, want)
	}
	if bare := r.Cases[2].Rounds[0]; bare.Records%4 != 0 {
		t.Errorf("the bare writer wrote %d records in writes of 4", bare.Records)
	}
}

func TestABareWriterSaysWhereItCouldNotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenBare(t.Context(), BarePlan{Folder: filepath.Join(file, "below"), Bytes: 1}); err == nil || !strings.Contains(err.Error(), "write beside the broker in "+file) {
		t.Errorf("got %v", err)
	}
}

func TestABareWriterSyncsEachWriteOrEveryWhile(t *testing.T) {
	folder := t.TempDir()
	callers, err := OpenBare(t.Context(), BarePlan{Folder: folder, Bytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	w := callers.All[0].(*bareWriter)
	before := w.synced
	for n := range uint64(3) {
		if err := w.Call(context.Background(), n); err != nil {
			t.Fatal(err)
		}
	}
	if w.at != 300 || !w.synced.After(before) {
		t.Errorf("%d bytes written, last synced %v", w.at, w.synced)
	}
	w.every, before = time.Hour, w.synced
	if err := w.Call(context.Background(), 3); err != nil || w.synced != before || w.at != 400 {
		t.Errorf("a write within the interval: %v, %d bytes, synced %v", err, w.at, w.synced)
	}
	if err := callers.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestRecordsPerSyncAreKnownOnlyWhenSomethingWasSynced(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	if got := perSync(ServerUsage{Syncs: n(10), Synced: n(100)}, ServerUsage{Syncs: n(14), Synced: n(220)}); got == nil || *got != 30 {
		t.Errorf("got %v", got)
	}
	same := ServerUsage{Syncs: n(10), Synced: n(100)}
	for _, pair := range [][2]ServerUsage{{same, same}, {{}, same}, {same, {}}} {
		if got := perSync(pair[0], pair[1]); got != nil {
			t.Errorf("%+v: got %v", pair, *got)
		}
	}
}
