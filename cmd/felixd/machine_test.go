package main

import (
	"crypto/tls"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// What is in force is printed, and does not depend on the machine.
//
// mission 338
func TestTheConfigurationIsTheSameOnTwoAndOnSixtyFourCores(t *testing.T) {
	before := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(before)
	two, _ := configured(t, nil)
	runtime.GOMAXPROCS(64)
	many, _ := configured(t, nil)
	if !slices.Equal(two, many) {
		t.Errorf("with two:\n%q\nwith many:\n%q", two, many)
	}
}

// mission 212, mission 327 (queue depths and workers)
func TestExecutorsFollowTheirSettingForEachCoreShard(t *testing.T) {
	for _, c := range []struct {
		args        []string
		want, slots int
	}{
		{nil, 4, 2048}, {[]string{"--executors", "1"}, 1, 512}, {[]string{"--executors", "8", "--publish-queue-depth", "3"}, 8, 24},
		{[]string{"--executors", "3", "--core-shards", "2"}, 6, 3072},
	} {
		r := start(t, t.TempDir(), c.args...)
		gauge(t, r, "felixd_actor_executors", c.want)
		gauge(t, r, "felix_publish_queue_slots_budget", c.slots)
		if code := r.stop(t); code != exitOK {
			t.Errorf("exit code %d", code)
		}
	}
	if code, text := tool("config", "--executors", "64", "--core-shards", "64"); code != exitUsage {
		t.Errorf("4096 executors: exit code %d: %s", code, text)
	}
}

// mission 326 (windows), mission 327 (batching), mission 350
func TestWindowsPoolsBatchesAndFsyncAreSettings(t *testing.T) {
	lines, _ := configured(t, nil, "--conn-recv-window", "4194304", "--stream-recv-window", "1048576", "--executors", "2", "--publish-window", "32",
		"--event-batch-max-events", "8", "--event-batch-max-bytes", "4096", "--event-batch-max-delay-us", "100", "--durable-fsync-mode", "none")
	set := 0
	for _, line := range lines {
		if !strings.HasSuffix(line, " default") {
			set++
		}
	}
	if set != 8 {
		t.Errorf("%d settings are in force, want 8: %q", set, lines)
	}
	c, _ := loaded(t, "FELIX_BROKER_PUB_CONN_RECV_WINDOW=4194304", "FELIX_BROKER_PUB_STREAM_RECV_WINDOW=1048576", "FELIX_EVENT_BATCH_MAX_EVENTS=8",
		"FELIX_EVENT_BATCH_MAX_DELAY_US=100", "FELIX_DURABLE_FSYNC_MODE=none")
	if c.Windows.ConnMax != 4<<20 || c.Windows.StreamMax != 1<<20 || c.Limits.Delivery.MaxEvents != 8 || c.Limits.Delivery.MaxDelay.Microseconds() != 100 || c.Durable.Fsync.String() != "none" {
		t.Errorf("loaded %+v", c)
	}
}

// A broker that is told to insist on ALPN refuses who offers none, and one that is told which cipher suites may be used knows no others.
//
// mission 326 (TLS)
func TestTLSIsSet(t *testing.T) {
	c, _ := loaded(t, "FELIX_TLS_REQUIRE_ALPN=1", "FELIX_TLS_CIPHER_SUITES=TLS_AES_256_GCM_SHA384")
	if !c.RequireALPN || !slices.Equal(c.CipherSuites, []uint16{tls.TLS_AES_256_GCM_SHA384}) {
		t.Errorf("loaded %+v", c)
	}
	r := start(t, t.TempDir(), "--require-alpn")
	defer r.stop(t)
	if c, err := r.tryDial(t); err == nil {
		_ = c.CloseWithError(0, "")
		t.Error("a client without ALPN was let in")
	}
	c2, err := r.tryDial(t, "felix/1")
	if err != nil {
		t.Fatal(err)
	}
	_ = c2.CloseWithError(0, "")
}

func gauge(t *testing.T, r *running, name string, want int) {
	t.Helper()
	_, page := r.get(t, r.dev.HTTP+"/metrics")
	if !strings.Contains(page, fmt.Sprintf("\n%s %d\n", name, want)) {
		t.Errorf("%s is not %d", name, want)
	}
}
