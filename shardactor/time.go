package shardactor

import (
	"time"

	"github.com/felixd/felixd/internal/stages"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/wire/id"
)

// appendTime is how long an append of this shard takes to become readable, if it is timed: one at a time.
type appendTime struct {
	sampler stages.Sampler
	at      stages.Instant // 0 while none is timed
	end     id.Offset      // of the append
}

// path is whose time the shard's is.
func (s *Shard) path() stages.Path {
	if s.cache != nil {
		return stages.Cache
	}
	return stages.Publish
}

// queued notes how long a request was in the mailbox.
func (s *Shard) queued(sent stages.Instant, at shardcore.At) {
	s.opts.timings.Took(s.path(), stages.Queue, time.Duration(s.opts.timings.At(at.Wall)-sent))
}

// beginAppend begins to time an append.
func (s *Shard) beginAppend(e shardcore.Append) {
	a := &s.appended
	if len(e.Batches) == 0 || e.Log != shardcore.LogMain {
		return // it was given up before it left, or is of another log
	}
	if a.at != 0 && e.Batches[0].Base < a.end {
		a.at = 0 // the timed one failed, and its offsets are used again
	}
	if a.at == 0 && a.sampler.Take(s.opts.timings) {
		a.at, a.end = s.opts.timings.Now(), e.Batches[len(e.Batches)-1].End()
	}
}

// endAppend notes that everything below end is readable.
func (s *Shard) endAppend(end id.Offset) {
	if a := &s.appended; a.at != 0 && end >= a.end {
		s.opts.timings.Took(s.path(), stages.Storage, s.opts.timings.Since(a.at))
		a.at = 0
	}
}
