package shardactor

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// DiskOptions is what a node keeps its durable streams with.
type DiskOptions struct {
	// Store holds the logs; Exec runs what is done to them. Both outlive the node: close the store after Disks.Closed.
	Store *disklog.Store
	Exec  diskpool.Executor
	// Slots are those that the store reads with; nil shows no metrics of them.
	Slots *diskpool.ReadSlots
	// Retention holds where a stream has no bound of its own, one bound at a time.
	Retention route.Retention
	// RetentionInterval is the time from one run of the janitor to the next; KeepDeleted how long the files of deleted streams are kept.
	RetentionInterval time.Duration
	KeepDeleted       time.Duration
	// StateBytes bounds the memory of the state that commits leave, all shards together.
	StateBytes int64
	// IndexBytes bounds the memory of the keys and short values of log-backed caches, and of counters, all shards together: beyond it new
	// keys are refused; 0 is the default. InlineBytes is the longest value, in bytes, that is kept there; longer ones are read from the log. 0
	// is the default here too, and a negative number keeps none.
	IndexBytes  int64
	InlineBytes int
	// RemovedBytes bounds the values that deletes of log-backed caches are about to answer, all shards together; 0 is the default. One that has
	// no room is read from the log when others have been answered.
	RemovedBytes int64
	// CacheBase says where the log of a new cache begins, at least: beyond all that a cache of that name has ever given, for whoever kept a
	// version or a position of that. nil: the clock, in microseconds since the Unix epoch.
	CacheBase func() id.Offset
	// CompactionRate bounds what compaction of caches and counters reads and writes, in bytes per second, all shards together; 0 is no
	// bound.
	CompactionRate int64
	// Groups are the settings of the consumer groups of durable streams; the zero value is the default.
	Groups GroupSettings
	// Quarantine keeps a node up whose disk holds a log that is damaged; that shard is refused. Otherwise OnDamaged is told, which must
	// not block: there is only one copy, and an operator has to look.
	Quarantine bool
	OnDamaged  func(error)
	// LogOpened, when not nil, is told the identity of each log that the assignment did not name, and of which incarnation of its stream it
	// is. It must not block.
	LogOpened func(name route.Name, incarnation id.Incarnation, shard uint32, log id.LogID)
	// Rand draws seeds for the tables of keys. Default: the system's.
	Rand func() uint64
	// Ready, when not nil, is called once: when everything that was assigned first is open, or refused for good. It must not block.
	Ready func()
}

// DefaultDiskOptions are the documented defaults, without what a node must bring.
func DefaultDiskOptions() DiskOptions {
	return DiskOptions{
		RetentionInterval: time.Minute, KeepDeleted: 24 * time.Hour, StateBytes: 256 << 20,
		IndexBytes: 1 << 30, RemovedBytes: 64 << 20, InlineBytes: keyed.DefaultInlineMax, CompactionRate: 64 << 20, Groups: DefaultGroupSettings(),
	}
}

// Disks is what the durable shards of one node share, and what is left of them when their actors are gone. Safe for concurrent use.
type Disks struct {
	opts       DiskOptions
	state      *reading.StateBudget
	index      *keyed.Budget // of the keys of caches and counters
	claims     *groupClaims
	kept       *groupClaims  // what groups keep
	groupIndex *keyed.Budget // of the keys of groups, which kept bounds; this one only counts them
	compaction pace
	removed    removedRoom
	cold       errands       // reads of values that deletes wait for
	moving     errands       // what compactions have done
	given      atomic.Uint64 // no cache of this node has given an offset at or past it

	mu   sync.Mutex
	open []*diskFiles // in turn
	live int          // shards whose files may be open, and jobs beside those of a log
	idle chan struct{}
}

// NewDisks returns the disks of a node without shards.
func NewDisks(o DiskOptions) *Disks {
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	if o.Groups.PerShard == 0 {
		o.Groups = DefaultGroupSettings()
	}
	if o.Groups.Kept.Node == 0 {
		o.Groups.Kept = groupcore.DefaultKept()
	}
	if o.CacheBase == nil {
		o.CacheBase = func() id.Offset { return id.Offset(max(0, o.Exec.Now().UnixMicro())) }
	}
	if o.IndexBytes == 0 {
		o.IndexBytes = DefaultDiskOptions().IndexBytes
	}
	if o.RemovedBytes == 0 {
		o.RemovedBytes = DefaultDiskOptions().RemovedBytes
	}
	d := &Disks{
		opts: o, state: reading.NewStateBudget(o.StateBytes), index: keyed.NewBudget(o.IndexBytes), claims: newGroupClaims(o.Groups.Claims),
		kept: newGroupKept(o.Groups.Kept), groupIndex: keyed.NewBudget(math.MaxInt64 / 2),
		compaction: pace{rate: o.CompactionRate},
		removed:    removedRoom{limit: o.RemovedBytes},
		cold:       errands{limit: coldRuns}, moving: errands{limit: compactRuns},
		idle: make(chan struct{}),
	}
	close(d.idle)
	return d
}

// Closed waits until the files of all shards are closed and nothing else is done to the store. Ask when no shard can come any more.
func (d *Disks) Closed(ctx context.Context) error {
	d.mu.Lock()
	idle := d.idle
	d.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin counts what keeps the store in use from now on: files that may be open, jobs that look at others. ended counts what does not
// any more.
func (d *Disks) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live++; d.live == 1 {
		d.idle = make(chan struct{})
	}
}

func (d *Disks) ended() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live--; d.live == 0 {
		close(d.idle)
	}
}

// add puts an open log on the list for the janitor, and remove takes it off.
func (d *Disks) add(f *diskFiles) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i, found := slices.BinarySearchFunc(d.open, f.turn(), inTurn); !found {
		d.open = slices.Insert(d.open, i, f)
	}
}

func (d *Disks) remove(f *diskFiles) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i, found := slices.BinarySearchFunc(d.open, f.turn(), inTurn); found {
		d.open = slices.Delete(d.open, i, i+1)
	}
}

// turn is the place of a log in the order in which the janitor comes to them: those of one shard, which have one number, by kind.
type turn struct {
	number id.ShardID
	kind   disklog.Kind
}

func (f *diskFiles) turn() turn { return turn{f.number, f.spec.Kind} }

func inTurn(f *diskFiles, t turn) int {
	return cmp.Or(cmp.Compare(f.number, t.number), cmp.Compare(f.spec.Kind, t.kind))
}

// after returns at most limit open logs whose turn comes after t.
func (d *Disks) after(t turn, limit int) []*diskFiles {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, found := slices.BinarySearchFunc(d.open, t, inTurn)
	if found {
		i++
	}
	return slices.Clone(d.open[i:min(len(d.open), i+limit)])
}

// retention is what a log keeps: each bound is the stream's, or the node's where that has none.
func (d *Disks) retention(of route.Retention) disklog.Retention {
	r := disklog.Retention{Bytes: of.Bytes, Age: of.Age}
	if r.Bytes == 0 {
		r.Bytes = d.opts.Retention.Bytes
	}
	if r.Age == 0 {
		r.Age = d.opts.Retention.Age
	}
	return r
}

// cacheBase is where the log of a new cache begins. It grows by itself faster than any cache does, by at most a million offsets a second; and
// should the clock have been set back, it is not below what the caches have given that this process has seen.
func (d *Disks) cacheBase() id.Offset {
	base := d.opts.CacheBase()
	if given := id.Offset(d.given.Load()); given > 0 { // who was told of all below it is not to go on there
		base = max(base, given.Add(1))
	}
	return base
}

// gave says that a cache gives offsets up to end.
func (d *Disks) gave(end id.Offset) {
	for {
		was := d.given.Load()
		if uint64(end) <= was || d.given.CompareAndSwap(was, uint64(end)) {
			return
		}
	}
}

// seed draws where the keys of a log stand in their table: clients must not know it.
func (d *Disks) seed() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opts.Rand()
}
