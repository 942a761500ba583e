package testkit

// Footprint is what a daemon holds: bytes of heap and stacks, without garbage, and goroutines.
type Footprint struct{ Memory, Goroutines float64 }

// CollectOften is for the environment of a daemon whose Footprint is measured: it collects whenever a tenth of what it holds has come to it.
const CollectOften = "GOGC=10"

// Footprint reads it: the least of a few collections. What a collection has left of the heap is what stands in the metrics just after it, or else
// follows from when the next one is due, which does not depend on how soon somebody looks. The daemon has to have CollectOften.
func (d *Daemon) Footprint() (f Footprint) {
	d.t.Helper()
	const collected = "go_gc_duration_seconds_count"
	value := func(page, name string) float64 {
		v, _ := Metric(page, name)
		return v
	}
	first := value(d.Metrics(), collected)
	Eventually(d.t, "garbage is collected", func() bool { // reading the page makes garbage
		page := d.Metrics()
		heap := min(value(page, "go_memstats_heap_alloc_bytes"), value(page, "go_memstats_next_gc_bytes")/1.1)
		memory := heap + value(page, "go_memstats_stack_inuse_bytes")
		if now := value(page, collected); now > first && (f.Memory == 0 || memory < f.Memory) {
			f = Footprint{memory, value(page, "go_goroutines")}
		}
		return value(page, collected) >= first+3
	})
	return f
}
