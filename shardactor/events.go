package shardactor

import (
	"log/slog"
	"time"

	"github.com/felixd/felixd/shardactor/shardcore"
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
