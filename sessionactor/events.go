package sessionactor

import "log/slog"

// pumpFailed: a goroutine of a session panicked, which cost the connection.
type pumpFailed struct {
	session uint64
	pump    string
	value   string
	stack   []byte
}

func (e pumpFailed) EventName() string { return "pump_failed" }
func (e pumpFailed) Level() slog.Level { return slog.LevelError }
func (e pumpFailed) Attrs() []slog.Attr {
	return []slog.Attr{slog.Uint64("session", e.session), slog.String("pump", e.pump), slog.String("panic", e.value), slog.String("stack", string(e.stack))}
}

// logReadFailed: the log of a stream could not be read for a client. Trimmed offsets and closed logs are no failures.
type logReadFailed struct {
	session uint64
	stream  string
	shard   uint32
	err     error
}

func (e logReadFailed) EventName() string { return "log_read_failed" }
func (e logReadFailed) Level() slog.Level { return slog.LevelError }
func (e logReadFailed) Attrs() []slog.Attr {
	return []slog.Attr{slog.Uint64("session", e.session), slog.String("stream", e.stream), slog.Uint64("shard", uint64(e.shard)), slog.Any("error", e.err)}
}

// answersUnread: a stream was ended because its client reads no answers and the node has too many of them.
type answersUnread struct {
	session uint64
	client  string
	bytes   int
}

func (e answersUnread) EventName() string { return "answers_unread" }
func (e answersUnread) Level() slog.Level { return slog.LevelWarn }
func (e answersUnread) Attrs() []slog.Attr {
	return []slog.Attr{slog.Uint64("session", e.session), slog.String("client", e.client), slog.Int("bytes", e.bytes)}
}

// principalClosed: requests of a principal made shards fail more than once, so its connection was closed.
type principalClosed struct {
	session         uint64
	tenant, subject string
}

func (e principalClosed) EventName() string { return "principal_closed" }
func (e principalClosed) Level() slog.Level { return slog.LevelError }
func (e principalClosed) Attrs() []slog.Attr {
	return []slog.Attr{slog.Uint64("session", e.session), slog.String("tenant", e.tenant), slog.String("principal", e.subject)}
}
