package main

import (
	"bytes"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/disklog"
)

func loaded(t *testing.T, environ ...string) (Config, []string) {
	t.Helper()
	all := settings()
	flags := pflag.NewFlagSet("dev", pflag.ContinueOnError)
	addFlags(flags, all)
	c, warnings, err := load(all, flags, environ)
	if err != nil {
		t.Fatal(err)
	}
	return c, warnings
}

// mission 280, mission 284, mission 285, mission 286, mission 328, mission 367
func TestEverySettingOfDurableStreamsIsRead(t *testing.T) {
	c, warnings := loaded(t, "FELIX_DURABLE_STORAGE_DIR=/d", "FELIX_DURABLE_FSYNC_MODE=periodic", "FELIX_DURABLE_FSYNC_INTERVAL_MS=5", "FELIX_DURABLE_SEGMENT_BYTES=4096",
		"FELIX_DURABLE_INDEX_SPACING_BYTES=64", "FELIX_DURABLE_MAX_RECORDS_PER_READ=7", "FELIX_DURABLE_PREALLOCATE=0", "FELIX_DURABLE_VERIFY_ON_OPEN=lazy",
		"FELIX_DURABLE_QUARANTINE_DAMAGED=true", "FELIX_DURABLE_RETENTION_BYTES=1", "FELIX_DURABLE_RETENTION_SECONDS=2", "FELIX_DURABLE_RETENTION_INTERVAL_SECONDS=3",
		"FELIX_DURABLE_DELETED_KEEP_SECONDS=0", "FELIX_ACK_ON_COMMIT=0", "FELIX_ACK_WAIT_TIMEOUT_MS=9", "FELIX_SUB_QUEUE_POLICY=block",
		"FELIX_CACHE_INDEX_BYTES=1048576", "FELIX_CACHE_INLINE_BYTES=1", "FELIX_STORAGE_COMPACTION_BYTES_PER_SEC=0", "FELIX_CACHE_WATCH_SNAPSHOT_BYTES=65536")
	want := durableOptions{Dir: "/d", Fsync: disklog.Periodic, FsyncInterval: 5 * time.Millisecond, SegmentBytes: 4096, IndexSpacing: 64,
		Verify: disklog.VerifyLazy, QuarantineDamaged: true, RetentionBytes: 1, RetentionAge: 2 * time.Second, RetentionInterval: 3 * time.Second,
		CacheIndexBytes: 1 << 20, CacheInlineBytes: 1, Groups: shardactor.DefaultGroupSettings(),
	}
	if !reflect.DeepEqual(c.Durable, want) || len(warnings) > 0 {
		t.Fatalf("read\n%+v, %q\nwant\n%+v", c.Durable, warnings, want)
	}
	if !c.Limits.AckAtClaim || c.Limits.AckWait != 9*time.Millisecond || c.Limits.ReadRecords != 7 || c.Limits.WatchSnapshotBytes != 1<<16 || c.Limits.Overflow != storage.Block {
		t.Fatalf("limits %+v", c.Limits)
	}
	if c, _ := loaded(t); c.Limits.AckAtClaim || c.Limits.AckWait != 2*time.Second || c.Limits.ReadRecords != 10_000 || c.Limits.WatchSnapshotBytes != 64<<20 {
		t.Fatalf("default limits %+v", c.Limits)
	}
	if c, _ := loaded(t); c.Durable.CacheIndexBytes != 1<<30 || c.Durable.CacheInlineBytes != 4096 || c.Durable.CompactionRate != 64<<20 {
		t.Fatalf("defaults of caches %+v", c.Durable)
	}
}

func TestLogsAreInTheDataDirectoryUnlessToldOtherwise(t *testing.T) {
	for value, want := range map[string]string{"": filepath.Join("data", "log"), "/elsewhere": "/elsewhere"} {
		if o := (durableOptions{Dir: value}); o.root("data") != want || !o.enabled() {
			t.Errorf("%q: %s", value, o.root("data"))
		}
	}
	if (durableOptions{Dir: noStorage}).enabled() {
		t.Error("none is a folder")
	}
}

func TestAnIntervalAloneAsksForThePeriodicMode(t *testing.T) {
	for want, environ := range map[disklog.FsyncMode][]string{
		disklog.OnCommit: {"FELIX_DURABLE_FSYNC_INTERVAL_MS=5", "FELIX_DURABLE_FSYNC_MODE=on_commit"},
		disklog.Periodic: {"FELIX_DURABLE_FSYNC_INTERVAL_MS=5"},
		disklog.None:     {"FELIX_DURABLE_FSYNC_MODE=none"},
	} {
		if c, _ := loaded(t, environ...); c.Durable.Fsync != want {
			t.Errorf("%q: %s", environ, c.Durable.Fsync)
		}
	}
	if c, _ := loaded(t); c.Durable.Fsync != disklog.OnCommit {
		t.Errorf("nothing set: %s", c.Durable.Fsync)
	}
}

func TestAnIntervalWithoutEffectIsTold(t *testing.T) {
	_, warnings := loaded(t, "FELIX_DURABLE_FSYNC_INTERVAL_MS=5", "FELIX_DURABLE_FSYNC_MODE=on_commit")
	if len(warnings) != 1 || !strings.Contains(warnings[0], "FELIX_DURABLE_FSYNC_INTERVAL_MS") || !strings.Contains(warnings[0], "on_commit") {
		t.Fatalf("%q", warnings)
	}
}

func TestDurableSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"--durable-fsync-mode":                 {"--durable-fsync-mode", "sometimes"},
		"--durable-fsync-interval-ms":          {"--durable-fsync-interval-ms", "0"},
		"--durable-segment-bytes":              {"--durable-segment-bytes", "4095"},
		"--durable-index-spacing-bytes: 8192":  {"--durable-segment-bytes", "4096", "--durable-index-spacing-bytes", "8192"},
		"--durable-max-records-per-read":       {"--durable-max-records-per-read", "0"},
		"--durable-verify-on-open":             {"--durable-verify-on-open", "true"},
		"--durable-retention-bytes":            {"--durable-retention-bytes", "0"},
		"--durable-retention-seconds":          {"--durable-retention-seconds", "0"},
		"--durable-retention-interval-seconds": {"--durable-retention-interval-seconds", "0"},
		"--cache-index-bytes":                  {"--cache-index-bytes", "1048575"},
		"--cache-inline-bytes":                 {"--cache-inline-bytes", "65537"},
		"--cache-watch-snapshot-bytes":         {"--cache-watch-snapshot-bytes", "0"},
		"--storage-compaction-bytes-per-sec":   {"--storage-compaction-bytes-per-sec", "64MiB"},
		"--group-visibility-timeout-ms":        {"--group-visibility-timeout-ms", "0"},
		"--group-max-visibility-ms":            {"--group-max-visibility-ms", "29999"},
		"--group-max-in-flight":                {"--group-max-in-flight", "0"},
		"--group-retry-backoff-ms":             {"--group-retry-backoff-ms", "1,x"},
		"--ack-wait-timeout-ms":                {"--ack-wait-timeout-ms", "0"},
		"--storage-fault-file: stat":           {"--storage-fault-file", filepath.Join(t.TempDir(), "none")},
	} {
		var stderr bytes.Buffer
		if code := run(append([]string{"dev"}, args...), nil, io.Discard, &stderr, nil); code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: exit code %d: %s", args, code, &stderr)
		}
	}
}

func TestSettingsOfCachesReachTheShards(t *testing.T) {
	c, _ := loaded(t, "FELIX_CACHE_INDEX_BYTES=2097152", "FELIX_CACHE_INLINE_BYTES=77", "FELIX_STORAGE_COMPACTION_BYTES_PER_SEC=5")
	d := (&durableStorage{}).diskOptions(c.Durable)
	if d.IndexBytes != 2<<20 || d.InlineBytes != 77 || d.CompactionRate != 5 {
		t.Errorf("%+v", d)
	}
}

func TestSettingsOfGroupsReachTheShards(t *testing.T) {
	c, _ := loaded(t, "FELIX_GROUP_VISIBILITY_TIMEOUT_MS=1", "FELIX_GROUP_MAX_VISIBILITY_MS=2", "FELIX_GROUP_MAX_WAIT_MS=3", "FELIX_GROUP_MAX_IN_FLIGHT=4",
		"FELIX_GROUP_MAX_ATTEMPTS=0", "FELIX_GROUP_RETRY_BACKOFF_MS=5, 6", "FELIX_GROUP_MAX_DEAD_LETTERS=7", "FELIX_GROUP_IDLE_MS=8",
		"FELIX_GROUP_CLAIM_BYTES=4194304", "FELIX_GROUP_STATE_BYTES=8388608")
	if kept := (&durableStorage{}).diskOptions(c.Durable).Groups.Kept; kept.Node != 8<<20 || kept.Tenant != 2<<20 {
		t.Errorf("%+v", kept)
	}
	if claims := (&durableStorage{}).diskOptions(c.Durable).Groups.Claims; claims.Node != 4<<20 || claims.Tenant != 1<<20 {
		t.Errorf("%+v", claims)
	}
	g := (&durableStorage{}).diskOptions(c.Durable).Groups.Options
	if g.Visibility != time.Millisecond || g.MaxVisibility != 2*time.Millisecond || g.MaxWait != 3*time.Millisecond || g.MaxInFlight != 4 || g.MaxAttempts != 0 ||
		!slices.Equal(g.BackOff, []time.Duration{5 * time.Millisecond, 6 * time.Millisecond}) || g.MaxDeadLetters != 7 || g.IdleAfter != 8*time.Millisecond {
		t.Errorf("%+v", g)
	}
}
