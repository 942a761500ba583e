package shardactor

import (
	"log/slog"
	"time"

	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// roleChanged: a shard replica plays another role now.
type roleChanged struct {
	shard  id.ShardID
	name   string
	change shardcore.RoleChanged
}

func (e roleChanged) EventName() string { return "shard_role_changed" }
func (e roleChanged) Level() slog.Level { return slog.LevelDebug }
func (e roleChanged) Attrs() []slog.Attr {
	return []slog.Attr{slog.Int64("shard", int64(e.shard)), slog.String("name", e.name), slog.String("from", e.change.From), slog.String("to", e.change.To), slog.String("reason", e.change.Reason)}
}

// shardFailed: a shard panicked; its contents are gone if it kept them in memory.
type shardFailed struct {
	shard       id.ShardID
	name        string
	panic       string
	quarantined bool
	retryIn     time.Duration
}

func (e shardFailed) EventName() string {
	if e.quarantined {
		return "shard_quarantined"
	}
	return "shard_restarted"
}
func (e shardFailed) Level() slog.Level { return slog.LevelError }
func (e shardFailed) Attrs() []slog.Attr {
	return []slog.Attr{slog.Int64("shard", int64(e.shard)), slog.String("name", e.name), slog.String("panic", e.panic), slog.Duration("retry_in", e.retryIn)}
}

// diskStalled: a write or sync of a shard's log takes suspiciously long; back says that it ended.
type diskStalled struct {
	shard id.ShardID
	name  string
	back  bool
}

func (e diskStalled) EventName() string {
	if e.back {
		return "disk_back"
	}
	return "disk_stalled"
}
func (e diskStalled) Level() slog.Level { return slog.LevelWarn }
func (e diskStalled) Attrs() []slog.Attr {
	return []slog.Attr{slog.Int64("shard", int64(e.shard)), slog.String("name", e.name)}
}

// shardPoisonedSeen: a sync of a shard's log failed. Nothing is acknowledged until a new process has read the disk.
type shardPoisonedSeen struct {
	shard id.ShardID
	name  string
	err   error
}

func (e shardPoisonedSeen) EventName() string { return "shard_poisoned" }
func (e shardPoisonedSeen) Level() slog.Level { return slog.LevelError }
func (e shardPoisonedSeen) Attrs() []slog.Attr {
	return []slog.Attr{slog.Int64("shard", int64(e.shard)), slog.String("name", e.name), slog.String("error", e.err.Error())}
}

// shardDamagedSeen: what a shard's log holds cannot be used.
type shardDamagedSeen struct {
	shard       id.ShardID
	name        string
	err         error
	quarantined bool // the node stays up without it
}

func (e shardDamagedSeen) EventName() string { return "shard_damaged" }
func (e shardDamagedSeen) Level() slog.Level { return slog.LevelError }
func (e shardDamagedSeen) Attrs() []slog.Attr {
	return []slog.Attr{slog.Int64("shard", int64(e.shard)), slog.String("name", e.name), slog.Bool("quarantined", e.quarantined), slog.String("error", e.err.Error())}
}

// shardOpenFailed: a shard's log could not be opened.
type shardOpenFailed struct {
	shard id.ShardID
	name  string
	err   error
}

func (e shardOpenFailed) EventName() string { return "shard_open_failed" }
func (e shardOpenFailed) Level() slog.Level { return slog.LevelError }
func (e shardOpenFailed) Attrs() []slog.Attr {
	return []slog.Attr{slog.Int64("shard", int64(e.shard)), slog.String("name", e.name), slog.String("error", e.err.Error())}
}

// filesFailed: the files of a log could not be closed, or set aside, in good order. The next open finds out what is left.
type filesFailed struct {
	shard id.ShardID
	name  string
	aside bool
	err   error
}

func (e filesFailed) EventName() string {
	if e.aside {
		return "log_not_set_aside"
	}
	return "log_not_closed"
}
func (e filesFailed) Level() slog.Level { return slog.LevelWarn }
func (e filesFailed) Attrs() []slog.Attr {
	return []slog.Attr{slog.Int64("shard", int64(e.shard)), slog.String("name", e.name), slog.String("error", e.err.Error())}
}

// logChecking: the log of a shard is being read before it is opened, and it takes a while.
type logChecking struct {
	shard       id.ShardID
	name        string
	done, total int64 // bytes
}

func (e logChecking) EventName() string { return "log_checking" }
func (e logChecking) Level() slog.Level { return slog.LevelInfo }
func (e logChecking) Attrs() []slog.Attr {
	return []slog.Attr{slog.Int64("shard", int64(e.shard)), slog.String("name", e.name), slog.Int64("bytes", e.done), slog.Int64("of", e.total)}
}

// logRecovered: the end of a log was cut off, as a crash in the middle of an append leaves it, or something else of it was repaired.
type logRecovered struct {
	shard    id.ShardID
	name     string
	cut      int64 // bytes
	repaired string
}

func (e logRecovered) EventName() string { return "log_recovered" }
func (e logRecovered) Level() slog.Level { return slog.LevelWarn }
func (e logRecovered) Attrs() []slog.Attr {
	return []slog.Attr{slog.Int64("shard", int64(e.shard)), slog.String("name", e.name), slog.Int64("cut_bytes", e.cut), slog.String("repaired", e.repaired)}
}

// logWriteFailed: an append failed, and what it was for was refused. Of several in a row the first is told.
type logWriteFailed struct {
	shard id.ShardID
	name  string
	kind  disklog.Kind
	err   error
}

func (e logWriteFailed) EventName() string { return "log_write_failed" }
func (e logWriteFailed) Level() slog.Level { return slog.LevelWarn }
func (e logWriteFailed) Attrs() []slog.Attr {
	return []slog.Attr{slog.Int64("shard", int64(e.shard)), slog.String("name", e.name), slog.String("log", e.kind.String()), slog.String("error", e.err.Error())}
}

// logCompacted: a compaction of the log of a cache or its counters is over, or, with an error, was given up.
type logCompacted struct {
	shard  id.ShardID
	name   string
	kind   disklog.Kind
	result keyed.Result
	bytes  int64 // of the log afterwards
}

func (e logCompacted) EventName() string {
	if e.result.Err != nil {
		return "log_compaction_failed"
	}
	return "log_compacted"
}
func (e logCompacted) Level() slog.Level {
	if e.result.Err != nil {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
func (e logCompacted) Attrs() []slog.Attr {
	list := []slog.Attr{
		slog.Int64("shard", int64(e.shard)), slog.String("name", e.name), slog.String("log", e.kind.String()), slog.Int("moved", e.result.Moved),
		slog.Int("left", e.result.Left), slog.Int64("bytes", e.bytes),
	}
	if err := e.result.Err; err != nil {
		list = append(list, slog.String("error", err.Error()))
	}
	return list
}

// groupFailed: a consumer group failed. Its next request brings it up again, from what is durable.
type groupFailed struct {
	shard       id.ShardID
	name, group string
	panic       string
}

func (e groupFailed) EventName() string { return "group_failed" }
func (e groupFailed) Level() slog.Level { return slog.LevelError }
func (e groupFailed) Attrs() []slog.Attr {
	return []slog.Attr{slog.Int64("shard", int64(e.shard)), slog.String("name", e.name), slog.String("group", e.group), slog.String("panic", e.panic)}
}
