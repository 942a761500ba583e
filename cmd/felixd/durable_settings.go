package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/disklog"
)

// noStorage is the folder of a daemon that keeps nothing in logs.
const noStorage = "none"

// durableOptions is how durable streams and caches are kept.
type durableOptions struct {
	Dir               string // as given: "" is logFolder in the data directory, noStorage is nowhere
	Fsync             disklog.FsyncMode
	FsyncInterval     time.Duration // of FsyncPeriodic
	SegmentBytes      int64
	IndexSpacing      int
	Preallocate       bool
	Verify            disklog.VerifyMode
	QuarantineDamaged bool
	RetentionBytes    int64         // per log; 0 is no bound
	RetentionAge      time.Duration // 0 is no bound
	RetentionInterval time.Duration
	DeletedKeep       time.Duration // how long what was deleted is set aside
	FaultFile         string        // "" injects nothing
	CacheIndexBytes   int64         // of keys and short values, and of counters, all caches together
	CacheInlineBytes  int           // the longest value that is kept in memory
	CompactionRate    int64         // bytes per second; 0 is no bound
	Groups            shardactor.GroupSettings
}

// logFolder is where logs are kept in the data directory.
const logFolder = "log"

func defaultDurable() durableOptions {
	disk := shardactor.DefaultDiskOptions()
	return durableOptions{
		Groups:          shardactor.DefaultGroupSettings(),
		CacheIndexBytes: disk.IndexBytes, CacheInlineBytes: disk.InlineBytes, CompactionRate: disk.CompactionRate,
		Fsync: disklog.OnCommit, FsyncInterval: 250 * time.Millisecond, SegmentBytes: 256 << 20, IndexSpacing: 4096,
		Preallocate: true, Verify: disklog.VerifyFull, RetentionInterval: time.Minute, DeletedKeep: 24 * time.Hour,
	}
}

// enabled reports whether there is storage at all.
func (o durableOptions) enabled() bool { return o.Dir != noStorage }

// root is the folder of the logs.
func (o durableOptions) root(dataDir string) string {
	if o.Dir == "" {
		return filepath.Join(dataDir, logFolder)
	}
	return o.Dir
}

// Bounds of settings. A segment holds its own header and footer many times over, and with more than a terabyte one would be read for
// hours; the bounds of a retention are those of a stream's own. An index hands out its memory by the mebibyte, and keeps no value inline that is
// longer than cacheInlineMax. The least that groups share is a quarter of a thousand records for each tenant, and the least that they keep a dozen groups.
const (
	segmentBytesMin, segmentBytesMax = 4 << 10, 1 << 40
	indexSpacingMin, indexSpacingMax = 64, 1 << 30
	retentionSecondsMax              = 9_223_372_036
	retentionBytesMax                = 1<<63 - 1
	daySeconds                       = 24 * 60 * 60
	cacheIndexMin, cacheIndexMax     = 1 << 20, 1 << 40
	cacheInlineMax                   = 64 << 10
	compactionRateMax                = 1 << 40
	groupClaimMin, groupClaimMax     = 256 << 10, 1 << 40
	groupStateMin, groupStateMax     = 1 << 20, 1 << 40
)

// durableSettings lists what can be set about durable streams and caches, in the order of the help.
func durableSettings() []*setting {
	d := defaultDurable()
	return []*setting{
		{flag: "durable-storage-dir", unit: "folder", variable: "FELIX_DURABLE_STORAGE_DIR", value: d.Dir, help: "folder for the logs of durable streams and caches; empty is the folder log in the data directory, none is no durable streams and all caches in memory", parse: func(v string, c *Config) error {
			c.Durable.Dir = v
			return nil
		}},
		{flag: "durable-fsync-mode", unit: "mode", variable: "FELIX_DURABLE_FSYNC_MODE", value: d.Fsync.String(), help: "when a record is acknowledged: on_commit after its sync, periodic and none after its write, which a power cut may undo; periodic syncs every --durable-fsync-interval-ms, none leaves it to the system", parse: func(v string, c *Config) (err error) {
			c.Durable.Fsync, err = disklog.ParseFsyncMode(v)
			return err
		}},
		{flag: "durable-fsync-interval-ms", unit: "ms", variable: "FELIX_DURABLE_FSYNC_INTERVAL_MS", value: ms(d.FsyncInterval), help: "time between two syncs of a log that is written to, in mode periodic; given alone it chooses that mode", parse: millis(func(c *Config) *time.Duration { return &c.Durable.FsyncInterval }, 1)},
		{flag: "durable-segment-bytes", unit: "bytes", variable: "FELIX_DURABLE_SEGMENT_BYTES", value: fmt.Sprint(d.SegmentBytes), help: "size at which a log begins another file; retention removes whole files", parse: int64s(func(c *Config) *int64 { return &c.Durable.SegmentBytes }, segmentBytesMin, segmentBytesMax)},
		{flag: "durable-index-spacing-bytes", unit: "bytes", variable: "FELIX_DURABLE_INDEX_SPACING_BYTES", value: fmt.Sprint(d.IndexSpacing), help: "bytes of a log between two entries of its index", parse: count(func(c *Config) *int { return &c.Durable.IndexSpacing }, indexSpacingMin, indexSpacingMax)},
		{flag: "durable-max-records-per-read", unit: "n", variable: "FELIX_DURABLE_MAX_RECORDS_PER_READ", value: fmt.Sprint(DefaultConfig().Limits.ReadRecords), help: "records that a client gets for one read of a range", parse: count(func(c *Config) *int { return &c.Limits.ReadRecords }, 1, 1<<20)},
		{flag: "durable-preallocate", unit: "bool", variable: "FELIX_DURABLE_PREALLOCATE", value: fmt.Sprint(d.Preallocate), help: "reserve room on the disk ahead of the records", parse: boolean(func(c *Config) *bool { return &c.Durable.Preallocate })},
		{flag: "durable-verify-on-open", unit: "mode", variable: "FELIX_DURABLE_VERIFY_ON_OPEN", value: d.Verify.String(), help: "what is checked of finished files at start: full reads every byte, sealed headers, footers and indexes, lazy headers and footers; the newest file of a log is always read whole", parse: func(v string, c *Config) (err error) {
			c.Durable.Verify, err = disklog.ParseVerifyMode(v)
			return err
		}},
		{flag: "durable-quarantine-damaged", unit: "bool", variable: "FELIX_DURABLE_QUARANTINE_DAMAGED", value: fmt.Sprint(d.QuarantineDamaged), help: "start although a log is damaged, and refuse its shard alone", parse: boolean(func(c *Config) *bool { return &c.Durable.QuarantineDamaged })},
		{flag: "durable-retention-bytes", unit: "bytes", variable: "FELIX_DURABLE_RETENTION_BYTES", help: "size of a stream's log beyond which its oldest files are removed; empty keeps all; a stream's own bound wins; caches, counters and groups keep what they hold", parse: unless(int64s(func(c *Config) *int64 { return &c.Durable.RetentionBytes }, 1, retentionBytesMax))},
		{flag: "durable-retention-seconds", unit: "s", variable: "FELIX_DURABLE_RETENTION_SECONDS", help: "age at which a file of a stream is removed, when its newest record has it; empty keeps all; a stream's own bound wins; caches, counters and groups keep what they hold", parse: unless(seconds(func(c *Config) *time.Duration { return &c.Durable.RetentionAge }, 1, retentionSecondsMax))},
		{flag: "durable-retention-interval-seconds", unit: "s", variable: "FELIX_DURABLE_RETENTION_INTERVAL_SECONDS", value: secs(d.RetentionInterval), help: "time between two looks for what retention removes", parse: seconds(func(c *Config) *time.Duration { return &c.Durable.RetentionInterval }, 1, daySeconds)},
		{flag: "durable-deleted-keep-seconds", unit: "s", variable: "FELIX_DURABLE_DELETED_KEEP_SECONDS", value: secs(d.DeletedKeep), help: "time that the log of a deleted stream or cache is kept aside before its room is given back", parse: seconds(func(c *Config) *time.Duration { return &c.Durable.DeletedKeep }, 0, retentionSecondsMax)},
		{flag: "cache-index-bytes", unit: "bytes", variable: "FELIX_CACHE_INDEX_BYTES", value: fmt.Sprint(d.CacheIndexBytes), help: "memory for keys and short values of caches that are kept in logs, and for counters, whole node; beyond it what is new is refused, and nothing is evicted", parse: int64s(func(c *Config) *int64 { return &c.Durable.CacheIndexBytes }, cacheIndexMin, cacheIndexMax)},
		{flag: "cache-inline-bytes", unit: "bytes", variable: "FELIX_CACHE_INLINE_BYTES", value: fmt.Sprint(d.CacheInlineBytes), help: "longest value that is kept there; a longer one is read from its log", parse: count(func(c *Config) *int { return &c.Durable.CacheInlineBytes }, 1, cacheInlineMax)},
		{flag: "cache-watch-snapshot-bytes", unit: "bytes", variable: "FELIX_CACHE_WATCH_SNAPSHOT_BYTES", value: fmt.Sprint(DefaultConfig().Limits.WatchSnapshotBytes), help: "most that one watch is given of current keys and values before its first change, with 128 bytes for each; a watch of more is refused", parse: bytes64(func(c *Config) *int64 { return &c.Limits.WatchSnapshotBytes })},
		{flag: "storage-compaction-bytes-per-sec", unit: "bytes", variable: "FELIX_STORAGE_COMPACTION_BYTES_PER_SEC", value: fmt.Sprint(d.CompactionRate), help: "what compaction of caches and counters may read and write in a second, whole node; 0 is no bound", parse: int64s(func(c *Config) *int64 { return &c.Durable.CompactionRate }, 0, compactionRateMax)},
		{flag: "group-visibility-timeout-ms", unit: "ms", variable: "FELIX_GROUP_VISIBILITY_TIMEOUT_MS", value: ms(d.Groups.Options.Visibility), help: "how long a record that a group has handed out stays claimed, unless the poll names a time", parse: millis(func(c *Config) *time.Duration { return &c.Durable.Groups.Options.Visibility }, 1)},
		{flag: "group-max-visibility-ms", unit: "ms", variable: "FELIX_GROUP_MAX_VISIBILITY_MS", value: ms(d.Groups.Options.MaxVisibility), help: "the most that a poll, an extend or a delay may ask for; not below --group-visibility-timeout-ms", parse: millis(func(c *Config) *time.Duration { return &c.Durable.Groups.Options.MaxVisibility }, 1)},
		{flag: "group-max-wait-ms", unit: "ms", variable: "FELIX_GROUP_MAX_WAIT_MS", value: ms(d.Groups.Options.MaxWait), help: "the most that a poll waits for records", parse: millis(func(c *Config) *time.Duration { return &c.Durable.Groups.Options.MaxWait }, 0)},
		{flag: "group-max-in-flight", unit: "n", variable: "FELIX_GROUP_MAX_IN_FLIGHT", value: fmt.Sprint(d.Groups.Options.MaxInFlight), help: "records of one group and shard that may be claimed or delayed; at it polls get nothing", parse: count(func(c *Config) *int { return &c.Durable.Groups.Options.MaxInFlight }, 1, 1<<20)},
		{flag: "group-claim-bytes", unit: "bytes", variable: "FELIX_GROUP_CLAIM_BYTES", value: fmt.Sprint(d.Groups.Claims.Node), help: "memory for the records that all groups have in flight, 256 bytes each, whole node; a group hands out more as others settle, and always has its first 16", parse: func(v string, c *Config) error {
			n := c.Durable.Groups.Claims.Node
			err := int64s(func(*Config) *int64 { return &n }, groupClaimMin, groupClaimMax)(v, c)
			c.Durable.Groups.Claims = groupcore.ClaimsOf(n)
			return err
		}},
		{flag: "group-state-bytes", unit: "bytes", variable: "FELIX_GROUP_STATE_BYTES", value: fmt.Sprint(d.Groups.Kept.Node), help: "memory for what all groups keep, in memory or at rest, whole node: 14 KiB for each group and shard, 256 bytes for each dead letter and each unfinished record beyond 16 of a group; beyond it no group is made, and new records are handed out few at a time", parse: func(v string, c *Config) error {
			n := c.Durable.Groups.Kept.Node
			err := int64s(func(*Config) *int64 { return &n }, groupStateMin, groupStateMax)(v, c)
			c.Durable.Groups.Kept = groupcore.ClaimsOf(n)
			return err
		}},
		{flag: "group-max-attempts", unit: "n", variable: "FELIX_GROUP_MAX_ATTEMPTS", value: fmt.Sprint(d.Groups.Options.MaxAttempts), help: "failures after which a record becomes a dead letter; 0 is never", parse: func(v string, c *Config) error {
			var n int
			err := count(func(*Config) *int { return &n }, 0, 1<<20)(v, c)
			c.Durable.Groups.Options.MaxAttempts = uint32(n)
			return err
		}},
		{flag: "group-retry-backoff-ms", unit: "list", variable: "FELIX_GROUP_RETRY_BACKOFF_MS", value: millisList(d.Groups.Options.BackOff), help: "pauses before a record is handed out again, after its first failure, its second and so on, comma-separated; the last one is for all that follow; empty is none", parse: func(v string, c *Config) (err error) {
			c.Durable.Groups.Options.BackOff, err = parseMillisList(v)
			return err
		}},
		{flag: "group-max-dead-letters", unit: "n", variable: "FELIX_GROUP_MAX_DEAD_LETTERS", value: fmt.Sprint(d.Groups.Options.MaxDeadLetters), help: "dead letters of one group and shard; a record that would be one more is tried again later", parse: count(func(c *Config) *int { return &c.Durable.Groups.Options.MaxDeadLetters }, 0, 1<<20)},
		{flag: "group-idle-ms", unit: "ms", variable: "FELIX_GROUP_IDLE_MS", value: ms(d.Groups.Options.IdleAfter), help: "time after which a group that nobody uses is let go of, and is in its log alone", parse: millis(func(c *Config) *time.Duration { return &c.Durable.Groups.Options.IdleAfter }, 1)},
		{flag: "ack-on-commit", unit: "bool", variable: "FELIX_ACK_ON_COMMIT", value: "true", help: "acknowledge a record of a durable stream when it is stored; false acknowledges it when it is queued, without an offset, and a crash may lose it", parse: func(v string, c *Config) error {
			err := boolean(func(c *Config) *bool { return &c.Limits.AckAtClaim })(v, c)
			c.Limits.AckAtClaim = err == nil && !c.Limits.AckAtClaim
			return err
		}},
		{flag: "ack-wait-timeout-ms", unit: "ms", variable: "FELIX_ACK_WAIT_TIMEOUT_MS", value: ms(DefaultConfig().Limits.AckWait), help: "longest time a publish waits to be stored; then its outcome is unknown", parse: millis(func(c *Config) *time.Duration { return &c.Limits.AckWait }, 1)},
		{flag: "storage-fault-file", unit: "file", variable: "FELIX_STORAGE_FAULT_FILE", help: "for tests alone: a file that says which disk calls fail or are slow", parse: func(v string, c *Config) error {
			c.Durable.FaultFile = v
			if v == "" {
				return nil
			}
			return checkFaultFile(v)
		}},
	}
}

// checkDurable looks at what only makes sense together for durable streams.
func (c Config) checkDurable() (wrong []error) {
	d := c.Durable
	if int64(d.IndexSpacing) > d.SegmentBytes {
		wrong = append(wrong, fmt.Errorf("--durable-index-spacing-bytes: %d is more than a whole segment has (--durable-segment-bytes %d)", d.IndexSpacing, d.SegmentBytes))
	}
	if err := c.Limits.Overflow.ForMemory(); err != nil && !d.enabled() {
		wrong = append(wrong, fmt.Errorf("--subscriber-queue-policy: %w; or give felixd a --durable-storage-dir", err))
	}
	if g := d.Groups.Options; g.MaxVisibility < g.Visibility {
		wrong = append(wrong, fmt.Errorf("--group-max-visibility-ms: %s is less than the default of a claim (--group-visibility-timeout-ms %s)", ms(g.MaxVisibility), ms(g.Visibility)))
	}
	if !d.enabled() && d.FaultFile != "" {
		wrong = append(wrong, errors.New("--storage-fault-file: there is no storage that could fail (--durable-storage-dir none)"))
	}
	return wrong
}

// implyPeriodic: an interval that is set alone asks for the mode that has one.
func (c *Config) implyPeriodic(given func(flag string) bool) {
	if given("durable-fsync-interval-ms") && !given("durable-fsync-mode") {
		c.Durable.Fsync = disklog.Periodic
	}
}

func secs(d time.Duration) string { return fmt.Sprint(int64(d / time.Second)) }

func seconds(field func(*Config) *time.Duration, low, high uint64) func(string, *Config) error {
	return func(v string, c *Config) error {
		n, err := number(v, low, high)
		*field(c) = time.Duration(n) * time.Second
		return err
	}
}

func int64s(field func(*Config) *int64, low, high uint64) func(string, *Config) error {
	return func(v string, c *Config) error {
		n, err := number(v, low, high)
		*field(c) = int64(n)
		return err
	}
}

// unless leaves an empty value alone.
func unless(parse func(string, *Config) error) func(string, *Config) error {
	return func(v string, c *Config) error {
		if v == "" {
			return nil
		}
		return parse(v, c)
	}
}

// millisList and parseMillisList are a list of times as it is written in a setting.
func millisList(list []time.Duration) string {
	texts := make([]string, len(list))
	for i, d := range list {
		texts[i] = ms(d)
	}
	return strings.Join(texts, ",")
}

func parseMillisList(v string) (list []time.Duration, err error) {
	if v == "" {
		return nil, nil
	}
	texts := strings.Split(v, ",")
	if len(texts) > groupBackOffMax {
		return nil, fmt.Errorf("%d times are too many; %d are enough", len(texts), groupBackOffMax)
	}
	for _, text := range texts {
		n, err := number(strings.TrimSpace(text), 0, daySeconds*1000)
		if err != nil {
			return nil, err
		}
		list = append(list, time.Duration(n)*time.Millisecond)
	}
	return list, nil
}

// groupBackOffMax bounds the list of pauses: nobody wants a longer one, and each record looks at it.
const groupBackOffMax = 32
