package bench

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const metricsText = `# HELP felix_published_records_total Records accepted from publishers.
# TYPE felix_published_records_total counter
felix_published_records_total 1.2345678e+07
felix_tenant_publish_queue_full_total{action="dropped",tenant="acme"} 1
felix_tenant_publish_queue_full_total{action="dropped",tenant="a tenant"} 2
felix_tenant_publish_queue_full_total{action="refused",tenant="acme"} 99
felix_subscribe_dropped_total 0
felix_storage_sync_batch_appends_bucket{le="1"} 1
felix_storage_sync_batch_appends_sum 640
felix_storage_sync_batch_appends_count 20
go_sched_gomaxprocs_threads 2
process_cpu_seconds_total 12.5
process_open_fds 1e+01 1700000000
`

func TestMetricsAreReadAsTheyStand(t *testing.T) {
	u, err := readMetrics(strings.NewReader(metricsText))
	if err != nil {
		t.Fatal(err)
	}
	if u.CPU == nil || *u.CPU != 12500*time.Millisecond || u.GOMAXPROCS == nil || *u.GOMAXPROCS != 2 ||
		u.Published == nil || *u.Published != 12345678 || u.DroppedPublish == nil || *u.DroppedPublish != 3 || u.DroppedReads == nil || *u.DroppedReads != 0 ||
		u.Syncs == nil || *u.Syncs != 20 || u.Synced == nil || *u.Synced != 640 {
		t.Fatalf("got %+v", u)
	}
}

func TestABrokerWithoutALineOfDroppedPublishesDroppedNone(t *testing.T) {
	u, err := readMetrics(strings.NewReader("felix_published_records_total 5\n"))
	if err != nil || u.DroppedPublish == nil || *u.DroppedPublish != 0 {
		t.Fatalf("got %+v, %v", u, err)
	}
}

func TestMetricsThatAreMissingAreUnknownAndNotZero(t *testing.T) {
	u, err := readMetrics(strings.NewReader("some_other_total 5\n"))
	if err != nil || u.CPU != nil || u.GOMAXPROCS != nil || u.Published != nil || u.DroppedPublish != nil || u.DroppedReads != nil || u.Syncs != nil || u.Synced != nil {
		t.Fatalf("got %+v, %v", u, err)
	}
}

func TestMetricWithoutANumberIsAnError(t *testing.T) {
	if _, err := readMetrics(strings.NewReader("process_cpu_seconds_total soon\n")); err == nil || !strings.Contains(err.Error(), `"soon"`) {
		t.Fatalf("got %v", err)
	}
}

func TestMeterNamesABrokerThatDoesNotTell(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	m := MetricsMeter{URL: server.URL + "/metrics", HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	if _, err := m.Usage(t.Context()); err == nil || !strings.Contains(err.Error(), m.URL) || !strings.Contains(err.Error(), "404") {
		t.Fatalf("got %v", err)
	}
	server.Close()
	if _, err := m.Usage(t.Context()); err == nil || !strings.Contains(err.Error(), m.URL) {
		t.Fatalf("got %v", err)
	}
}

func TestRawMeterTellsTheTimeOfItsProcess(t *testing.T) {
	u, err := newRaw(t).meter().Usage(t.Context())
	if err != nil || u.CPU == nil || *u.CPU <= 0 || u.At.IsZero() || u.Published != nil {
		t.Fatalf("got %+v, %v", u, err)
	}
}
