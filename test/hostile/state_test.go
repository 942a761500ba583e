package hostile

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/felixd/felixd/actors"
)

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

// perform carries out one command of the tests: "look", "collect" (look after a forced collection), or "busy <duration>".
func (b *broker) perform(command string) state {
	word, argument, _ := strings.Cut(command, " ")
	switch word {
	case "collect":
		runtime.GC() // finalizers and pools give back with the second
		runtime.GC()
		debug.FreeOSMemory()
	case "busy":
		if d, err := time.ParseDuration(argument); err == nil {
			b.busy.Store(int64(d))
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := b.listener.Connections()
	return state{Resident: resident(&m), Heap: int64(m.HeapAlloc), Goroutines: runtime.NumGoroutine(), Open: open, Metrics: b.metrics(), Events: b.events.copy()}
}

// resident is the process's memory as the system counts it; where it does not tell, as the runtime does.
func resident(m *runtime.MemStats) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return int64(m.Sys - m.HeapReleased)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		return int64(m.Sys - m.HeapReleased)
	}
	return kib << 10
}

// metrics are all counters and gauges, by name and label values: name{value}. The name alone is the sum.
func (b *broker) metrics() map[string]float64 {
	out := map[string]float64{}
	families, err := b.registry.Gather()
	if err != nil {
		panic("gather metrics: " + err.Error()) // the registry is this test's own
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			out[f.GetName()] += v
			for _, l := range m.GetLabel() {
				out[f.GetName()+"{"+l.GetValue()+"}"] += v
			}
		}
	}
	return out
}

// String is what a test logs of it.
func (s state) String() string {
	return fmt.Sprintf("%.1f MiB resident, %.1f MiB heap, %d goroutines, %d connections, %.0f streams",
		float64(s.Resident)/(1<<20), float64(s.Heap)/(1<<20), s.Goroutines, s.Open, s.Metrics["felix_client_streams"])
}
