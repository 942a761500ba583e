package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/felixd/felixd/internal/rawquic"
)

// ServerUsage is what a server tells of itself at one instant. Nil members are not known.
type ServerUsage struct {
	At             time.Time
	CPU            *time.Duration // since its start
	Published      *uint64        // records taken from publishers
	DroppedPublish *uint64        // unacknowledged batches dropped because a queue was full
	DroppedReads   *uint64        // records that slow subscribers lost
	Syncs          *uint64        // of durable logs
	Synced         *uint64        // records that these made durable
	GOMAXPROCS     *int
}

// Meter asks a server.
type Meter interface {
	Usage(ctx context.Context) (ServerUsage, error)
}

// RawMeter asks a raw peer.
type RawMeter struct{ Process *rawquic.Process }

// Usage implements Meter.
func (m RawMeter) Usage(context.Context) (ServerUsage, error) {
	u, err := m.Process.Usage()
	return ServerUsage{At: time.Now(), CPU: u.CPU}, err
}

// metricsMax bounds an answer of /metrics in bytes; a broker's has some 100 KiB.
const metricsMax = 8 << 20

// MetricsMeter reads the Prometheus metrics of a broker.
type MetricsMeter struct {
	URL  string
	HTTP *http.Client
}

// Usage implements Meter.
func (m MetricsMeter) Usage(ctx context.Context) (ServerUsage, error) {
	fail := func(err error) (ServerUsage, error) {
		return ServerUsage{}, fmt.Errorf("read metrics of the broker at %s: %w", m.URL, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL, nil)
	if err != nil {
		return fail(err)
	}
	answer, err := m.HTTP.Do(request)
	if err != nil {
		return fail(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fail(fmt.Errorf("it answered %s", answer.Status))
	}
	u, err := readMetrics(io.LimitReader(answer.Body, metricsMax))
	if err != nil {
		return fail(err)
	}
	u.At = time.Now()
	return u, nil
}

// readMetrics picks what a report needs out of the text format of Prometheus (version 0.0.4): "name{labels} value [time]".
func readMetrics(r io.Reader) (ServerUsage, error) {
	var u ServerUsage
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		name, rest, ok := strings.Cut(line, " ")
		if strings.HasPrefix(line, droppedPublishes) {
			_, rest, ok = strings.Cut(line, "} ")
			name = droppedPublishes
		}
		take, wanted := wantedMetrics[name]
		if !ok || !wanted || strings.HasPrefix(line, "#") {
			continue
		}
		text, _, _ := strings.Cut(rest, " ")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return u, fmt.Errorf("metric %s has the value %q: %w", name, text, err)
		}
		take(&u, value)
	}
	if u.Published != nil && u.DroppedPublish == nil { // a tenant that was never dropped from has no line
		u.DroppedPublish = new(uint64)
	}
	return u, lines.Err()
}

// droppedPublishes begins the lines of publishes that were dropped, one for each tenant, however it is called.
const droppedPublishes = `felix_tenant_publish_queue_full_total{action="dropped",tenant=`

// wantedMetrics are the lines that matter, by all that stands before the value.
var wantedMetrics = map[string]func(*ServerUsage, float64){
	"process_cpu_seconds_total": func(u *ServerUsage, v float64) {
		cpu := time.Duration(v * float64(time.Second))
		u.CPU = &cpu
	},
	"go_sched_gomaxprocs_threads": func(u *ServerUsage, v float64) {
		n := int(v)
		u.GOMAXPROCS = &n
	},
	"felix_published_records_total": func(u *ServerUsage, v float64) { u.Published = whole(v) },
	"felix_subscribe_dropped_total": func(u *ServerUsage, v float64) { u.DroppedReads = whole(v) },

	"felix_storage_sync_batch_appends_count": func(u *ServerUsage, v float64) { u.Syncs = whole(v) },
	"felix_storage_sync_batch_appends_sum":   func(u *ServerUsage, v float64) { u.Synced = whole(v) },
	droppedPublishes: func(u *ServerUsage, v float64) {
		if u.DroppedPublish == nil {
			u.DroppedPublish = new(uint64)
		}
		*u.DroppedPublish += uint64(v)
	},
}

func whole(v float64) *uint64 {
	n := uint64(v)
	return &n
}
