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
// durable or the cache is in memory, so that their shards have none.
var ErrLogDiffers = errors.New("the shard's log is another one")

// Log is the identity of a shard's log; zero where none was reported.
func (s Stream) Log(shard uint32) LogID { return logOf(s.Logs, shard) }

// Log is the identity of a shard's log; zero where none was reported.
func (c Cache) Log(shard uint32) LogID { return logOf(c.Logs, shard) }

// WithLogs returns s with the reported logs noted; s itself does not change. Errors: ErrLogDiffers, or a *FieldError for a
// shard that s does not have and for the zero id.
func (s Stream) WithLogs(reported []ShardLog) (Stream, error) {
	logs, err := s.logs().with(reported)
	if err != nil {
		return Stream{}, err
	}
	s.Logs = logs
	return s, nil
}

// WithLogs returns c with the reported logs noted; c itself does not change. Errors as those of Stream.WithLogs.
func (c Cache) WithLogs(reported []ShardLog) (Cache, error) {
	logs, err := c.logs().with(reported)
	if err != nil {
		return Cache{}, err
	}
	c.Logs = logs
	return c, nil
}

// logs is what the rules about the logs of a resource ask for.
type logs struct {
	known  string // as in Stream.Logs
	shards uint32
	kept   bool
	kind   ResourceKind
	none   string // why a resource that is not kept has none
}

func (s Stream) logs() logs {
	return logs{s.Logs, s.Shards, s.Durable, ResourceStream, "the stream is not durable"}
}

func (c Cache) logs() logs {
	return logs{c.Logs, c.Shards, !c.InMemory, ResourceCache, "the cache is in memory"}
}

func logOf(known string, shard uint32) (l LogID) {
	if end := (uint64(shard) + 1) * LogIDBytes; end <= uint64(len(known)) {
		copy(l[:], known[end-LogIDBytes:end])
	}
	return l
}

// with is what is known once reported is noted.
func (l logs) with(reported []ShardLog) (string, error) {
	if !l.kept {
		return "", fmt.Errorf("%w: %s", ErrLogDiffers, l.none)
	}
	if len(reported) == 0 {
		return l.known, nil
	}
	all := make([]byte, int(l.shards)*LogIDBytes)
	copy(all, l.known)
	for _, r := range reported {
		if r.Shard >= l.shards {
			return "", &FieldError{Field: "shard", Problem: fmt.Sprintf("is %d", r.Shard), Advice: fmt.Sprintf("the %s has %d shards", l.kind, l.shards)}
		}
		if r.Log == (LogID{}) {
			return "", &FieldError{Field: "log", Problem: "is zero", Advice: "report a log when it has an identity"}
		}
		at := all[int(r.Shard)*LogIDBytes:][:LogIDBytes]
		if old := LogID(at); old != (LogID{}) && old != r.Log {
			return "", fmt.Errorf("%w: shard %d has %x, reported is %x", ErrLogDiffers, r.Shard, old, r.Log)
		}
		copy(at, r.Log[:])
	}
	return string(all), nil
}

// checkLogs holds the rule of Stream.Logs and Cache.Logs.
func checkLogs(l logs) error {
	if l.known == "" || l.kept && uint64(len(l.known)) == uint64(l.shards)*LogIDBytes {
		return nil
	}
	if !l.kept {
		return &FieldError{Field: "logs", Problem: fmt.Sprintf("has %d bytes", len(l.known)), Advice: l.none + ", so that it has none"}
	}
	return &FieldError{Field: "logs", Problem: fmt.Sprintf("has %d bytes", len(l.known)),
		Advice: fmt.Sprintf("a %s has %d for each shard, or none at all", l.kind, LogIDBytes)}
}
