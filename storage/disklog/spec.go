package disklog

import (
	"fmt"
	"path"
	"time"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// Kind is what a log holds. Each kind has a root of its own, so that a cache and a stream of one name never meet.
type Kind = segment.LogKind

// The kinds of logs, see package segment.
const (
	Stream      = segment.Stream
	Cache       = segment.Cache
	CountersLog = segment.Counters
	Groups      = segment.Groups
	DeadLetters = segment.DeadLetters
)

// Spec says which log is meant and how it is kept.
type Spec struct {
	Kind                    Kind
	Tenant, Namespace, Name string
	Shard                   uint32
	Incarnation             id.Incarnation // of the stream or cache: one made again under the same name has another
	Generation              id.Generation  // recorded in a new log as the one it was made under
	// Log is the id the log is known by. Zero: it may not exist yet, and is made if so.
	Log id.LogID
	// MustExist says that the log was made and told of before, by somebody who did not keep its id: one that is not there is a *MissingError,
	// as with Log, and never made anew. Say it only of a log that was open once: the making of one may have been cut short by a crash.
	MustExist bool
	// Base is where the log begins if it is made.
	Base id.Offset
	// GivenOnce is for a log whose offsets clients keep and compare with: one that anybody may have been told of is never given again, even if
	// its record was lost. Where the mode may lose records, a log that was not closed in order goes on behind offsets that nobody was told of.
	GivenOnce bool
	Retention Retention
	// AlwaysSync acknowledges appends when they are on the device, whatever the store's mode: for a log that others rely on, which may be on the
	// device before it.
	AlwaysSync bool
	// Compress has CompressSealed rewrite this log's sealed segments.
	Compress bool
}

// Retention bounds what a log keeps. Whole sealed segments go, oldest first; zero means no bound.
type Retention struct {
	Bytes int64         // segments go while the log is larger
	Age   time.Duration // segments go whose newest record is older
}

func (s *Spec) key() *segment.Key {
	return &segment.Key{Tenant: s.Tenant, Namespace: s.Namespace, Name: s.Name, Shard: s.Shard}
}

// Dir is the directory of a log below the store's root.
func (s *Spec) Dir() string {
	return path.Join(s.Kind.Root(), segment.DirName(s.key(), s.Incarnation))
}

func (s *Spec) nameHash() uint64 { return segment.NameHash(s.key().Hash(), s.Kind) }

// shardName is how errors call the log.
func (s *Spec) shardName() string {
	return fmt.Sprintf("%s %s/%s/%s shard %d", s.Kind, s.Tenant, s.Namespace, s.Name, s.Shard)
}
