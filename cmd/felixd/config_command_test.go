package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// configured runs `felixd config` and returns its lines.
func configured(t *testing.T, environ []string, args ...string) (lines []string, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	if code := run(append([]string{"config"}, args...), environ, &out, &err, nil); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n"), err.String()
}

func TestConfigPrintsEverySettingAndWhereItComesFrom(t *testing.T) {
	lines, stderr := configured(t, []string{"FELIX_CACHE_INLINE_BYTES=77", "FELIX_SUB_QUEUE_CAPACITY=9", "FELIX_DATADIR=x", "FELIX_DURABLE_FSYNC_INTERVAL_MS=5"}, "--executors", "7")
	if len(lines) != len(settings()) || !strings.Contains(stderr, "FELIX_DATA_DIR?") {
		t.Fatalf("%d lines, and %q", len(lines), stderr)
	}
	seen := map[string][]string{}
	for _, line := range lines {
		f := strings.Fields(line)
		seen[f[0]] = f[1:]
	}
	for variable, want := range map[string][]string{
		"FELIX_CACHE_INLINE_BYTES": {"77", "FELIX_CACHE_INLINE_BYTES"}, "FELIX_BROKER_PUB_WORKERS_PER_CONN": {"7", "--executors"},
		"FELIX_SUBSCRIBER_QUEUE_CAPACITY": {"9", "FELIX_SUB_QUEUE_CAPACITY"}, "FELIX_CACHE_INDEX_BYTES": {"1073741824", "default"},
		"FELIX_DURABLE_FSYNC_MODE": {"periodic", "default"}, "FELIX_DURABLE_STORAGE_DIR": {`""`, "default"},
	} {
		if got := seen[variable]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %q, want %q", variable, got, want)
		}
	}
	if code, text := tool("config", "--executors", "0"); code != exitUsage || !strings.Contains(text, "--executors") {
		t.Errorf("a mistake: exit code %d: %s", code, text)
	}
}

// sumOf checks that the last line is the sum of the others, and returns it.
func sumOf(t *testing.T, lines []string) (sum int64) {
	t.Helper()
	for i, line := range lines {
		n, err := strconv.ParseInt(strings.Fields(line)[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if i < len(lines)-1 {
			sum += n
		} else if n != sum || !strings.Contains(line, "sum") {
			t.Fatalf("the sum is %d in %q", sum, line)
		}
	}
	return sum
}

func TestTheSumOfMemoryFollowsTheSettings(t *testing.T) {
	plain, _ := configured(t, nil, "--memory")
	more, _ := configured(t, []string{"FELIX_CACHE_INDEX_BYTES=3221225472"}, "--memory", "--cache-memory-bytes", strconv.Itoa(256<<20+1))
	if grown := sumOf(t, more) - sumOf(t, plain); grown != 2<<30+1 {
		t.Errorf("with 2 GiB and a byte more the sum grows by %d", grown)
	}
	none, _ := configured(t, nil, "--memory", "--durable-storage-dir", "none")
	if strings.Contains(strings.Join(none, "\n"), "FELIX_CACHE_INDEX_BYTES") || sumOf(t, none) != sumOf(t, plain)-1<<30-4*256<<20-9*64<<20 {
		t.Errorf("without storage:\n%s", strings.Join(none, "\n"))
	}
	for _, line := range plain[:len(plain)-1] {
		if v := regexp.MustCompile(`FELIX_\w+`).FindString(line); v != "" && !strings.Contains(settingNames(), " "+v+" ") {
			t.Errorf("%s is no setting", v)
		}
	}
}

func settingNames() string {
	names := " "
	for _, s := range settings() {
		names += s.variable + " "
	}
	return names
}

// Whatever budget of bytes a daemon shows beside its use is in the sum, with that size; what the sum has is shown.
func TestEveryBudgetThatADaemonShowsIsInTheSum(t *testing.T) {
	r := start(t, t.TempDir())
	defer r.stop(t)
	_, text := r.get(t, r.dev.HTTP+"/metrics")
	shown := map[string]int64{}
	for _, m := range regexp.MustCompile(`(?m)^(felix_[a-z_]+_budget_bytes) (\S+)$`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		shown[m[1]] = int64(n)
	}
	for _, b := range DefaultConfig().memoryBudgets() {
		if b.gauge == "" {
			continue
		}
		if n, ok := shown[b.gauge]; !ok || n != b.bytes {
			t.Errorf("%s: %d in the sum, %s is %d", b.what, b.bytes, b.gauge, n)
		}
		delete(shown, b.gauge)
	}
	delete(shown, "felix_publish_inflight_budget_bytes") // a part of felix_frame_budget_bytes
	for gauge, n := range shown {
		t.Errorf("%s is %d and not in the sum", gauge, n)
	}
}

func TestEverySettingIsOnAPage(t *testing.T) {
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("%q, %v", names, err)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, s := range settings() {
		if !strings.Contains(all.String(), "`"+s.variable+"`") {
			t.Errorf("no page has %s (--%s)", s.variable, s.flag)
		}
	}
}
