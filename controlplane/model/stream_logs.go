package model

import (
	"errors"
	"fmt"
)

// LogIDBytes is the length of a log's identity.
const LogIDBytes = 16

// LogID names one log: random bits drawn where the log is made, the same on every replica of the shard.
type LogID [LogIDBytes]byte

// ShardLog says which log a shard has.
type ShardLog struct {
	Shard uint32
	Log   LogID
}

// ErrLogDiffers marks a report of a log that contradicts the record: a shard has another log already, or the stream is not
// durable, so that its shards have none.
var ErrLogDiffers = errors.New("the shard's log is another one")

// Log is the identity of a shard's log; zero where none was reported.
func (s Stream) Log(shard uint32) (l LogID) {
	if end := (uint64(shard) + 1) * LogIDBytes; end <= uint64(len(s.Logs)) {
		copy(l[:], s.Logs[end-LogIDBytes:end])
	}
	return l
}

// WithLogs returns s with the reported logs noted; s itself does not change. Errors: ErrLogDiffers, or a *FieldError for a
// shard that s does not have and for the zero id.
func (s Stream) WithLogs(reported []ShardLog) (Stream, error) {
	if !s.Durable {
		return Stream{}, fmt.Errorf("%w: the stream is not durable", ErrLogDiffers)
	}
	all := make([]byte, int(s.Shards)*LogIDBytes)
	copy(all, s.Logs)
	for _, r := range reported {
		if r.Shard >= s.Shards {
			return Stream{}, &FieldError{Field: "shard", Problem: fmt.Sprintf("is %d", r.Shard), Advice: fmt.Sprintf("the stream has %d shards", s.Shards)}
		}
		if r.Log == (LogID{}) {
			return Stream{}, &FieldError{Field: "log", Problem: "is zero", Advice: "report a log when it has an identity"}
		}
		at := all[int(r.Shard)*LogIDBytes:][:LogIDBytes]
		if old := LogID(at); old != (LogID{}) && old != r.Log {
			return Stream{}, fmt.Errorf("%w: shard %d has %x, reported is %x", ErrLogDiffers, r.Shard, old, r.Log)
		}
		copy(at, r.Log[:])
	}
	if len(reported) > 0 {
		s.Logs = string(all)
	}
	return s, nil
}

// checkLogs holds the rule of Stream.Logs.
func (s Stream) checkLogs() error {
	if s.Logs == "" || s.Durable && uint64(len(s.Logs)) == uint64(s.Shards)*LogIDBytes {
		return nil
	}
	return &FieldError{Field: "logs", Problem: fmt.Sprintf("has %d bytes", len(s.Logs)),
		Advice: fmt.Sprintf("a durable stream has %d for each shard, or none at all", LogIDBytes)}
}
