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
