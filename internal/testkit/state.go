package testkit

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/felixd/felixd/actors"
)

// State is what a broker's process holds.
type State struct {
	Resident    int64 // bytes of memory, as the system counts them
	Heap        int64 // bytes
	Goroutines  int
	Descriptors int // open files and sockets; 0 where the system does not tell
	Open        int // connections with a place at the listener
	Series      int // of metrics, every combination of labels
	Metrics     map[string]float64
	Events      map[string]int
	Problem     string // why the command that was answered with this could not be carried out
}

// String is what a test logs of it.
func (s State) String() string {
	return fmt.Sprintf("%.1f MiB resident, %.1f MiB heap, %d goroutines, %d descriptors, %d connections, %.0f streams",
		float64(s.Resident)/(1<<20), float64(s.Heap)/(1<<20), s.Goroutines, s.Descriptors, s.Open, s.Metrics["felix_client_streams"])
}

func (b *process) state() State {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := b.listener.Connections()
	s := State{
		Resident: resident(&m), Heap: int64(m.HeapAlloc), Goroutines: runtime.NumGoroutine(), Descriptors: descriptors(),
		Open: open, Events: b.events.copy(),
	}
	s.Metrics, s.Series = b.metrics()
	return s
}

// resident is the process's memory as the system counts it; where it does not tell, as the runtime does.
func resident(m *runtime.MemStats) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return int64(m.Sys - m.HeapReleased)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return int64(m.Sys - m.HeapReleased)
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return int64(m.Sys - m.HeapReleased)
	}
	return kib << 10
}

func descriptors() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(all)
}

// metrics are all counters and gauges, by name and label values: name{value}. The name alone is the sum.
func (b *process) metrics() (out map[string]float64, series int) {
	out = map[string]float64{}
	families, err := b.registry.Gather()
	if err != nil {
		panic("gather metrics: " + err.Error()) // the registry is this process's own
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			series++
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			out[f.GetName()] += v
			for _, l := range m.GetLabel() {
				out[f.GetName()+"{"+l.GetValue()+"}"] += v
			}
		}
	}
	return out, series
}

// eventCount is an EventSink that counts by name.
type eventCount struct {
	mu     sync.Mutex
	byName map[string]int
}

func newEventCount() *eventCount { return &eventCount{byName: map[string]int{}} }

// Emit implements actors.EventSink.
func (c *eventCount) Emit(e actors.Event) { c.count(e.EventName()) }

func (c *eventCount) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byName[name]++
}

func (c *eventCount) copy() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for name, n := range c.byName {
		out[name] = n
	}
	return out
}
