package shardactor

import (
	"errors"
	"math"
	"time"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// groupLogs are the two logs of the consumer groups of a durable stream's shard, cursors and dead letters, beside its main log. They are made
// when a group is asked for the first time, and opened with the shard from then on. What is wrong with them, then or later, is the groups'
// trouble, and the stream goes on.
type groupLogs struct {
	cursors, dead keysLog
	claims        [2]*reading.Claims // nil until it is open
	tables        [2]*groupTable     // the same
	void          [2]id.Offset       // where the claims that were voided in this turn begin
	begun         bool
	openErr       error // why one could not be opened, until the shard has taken it
	poisoned      [2]error
	kept          keptNames
}

func newGroupLogs(o diskOptions) *groupLogs {
	g := &groupLogs{}
	g.kept = keptNames{budget: o.disks.kept, tenant: o.spec.Tenant, count: g.count}
	o.fold = foldGroups
	for i, kind := range []disklog.Kind{disklog.Groups, disklog.DeadLetters} {
		l := g.logs()[i]
		*l = keysLog{logFile: logFile{diskFiles: diskFiles{diskOptions: o}}, policy: keyed.CounterPolicy(), encode: encodeGroupMove}
		l.spec.Kind, l.spec.Log, l.spec.Retention, l.spec.Compress = kind, id.LogID{}, disklog.Retention{}, false
	}
	g.dead.spec.AlwaysSync = true // a position that is on the device counts on them
	g.cursors.which, g.dead.which = shardcore.LogCursors, shardcore.LogDeadLetters
	return g
}

func (g *groupLogs) logs() [2]*keysLog { return [2]*keysLog{&g.cursors, &g.dead} }

func (g *groupLogs) place(log shardcore.Log) int {
	if log == shardcore.LogDeadLetters {
		return 1
	}
	return 0
}

func (g *groupLogs) of(log shardcore.Log) *keysLog { return g.logs()[g.place(log)] }

// open reports whether both are.
func (g *groupLogs) open() bool { return g.cursors.opened && g.dead.opened }

// start opens what is not open.
func (g *groupLogs) start(generation id.Generation) {
	g.begun = true
	for _, l := range g.logs() {
		if !l.opened && !l.isOpening() {
			l.startOpen(generation)
		}
	}
}

// claimed takes a batch that was claimed in one of them.
func (g *groupLogs) claimed(log shardcore.Log, b *batch.Batch) {
	g.claims[g.place(log)].Claimed(b)
}

// voided takes that the claims at and after an offset are void.
func (g *groupLogs) voided(log shardcore.Log, from id.Offset) {
	i := g.place(log)
	g.void[i] = min(g.void[i], from)
	if c := g.claims[i]; c != nil {
		c.Void(from)
	}
}

// take steps the core through what the disk has told of the two logs.
func (g *groupLogs) take(core *shardcore.Core, at shardcore.At) {
	for i, l := range g.logs() {
		n := l.news.take()
		switch {
		case n.opened != nil:
			g.opened(l, n.opened)
		case n.openErr != nil:
			g.openFailed(l, n.openErr)
		}
		g.void[i] = math.MaxUint64
		l.complete(core, at, &n, func() { l.given = min(core.Tail(l.which), g.void[i]) })
		if n.trimmed > 0 {
			core.Step(at, shardcore.Trimmed{Log: l.which, Base: n.trimmed})
		}
		if n.poisoned != nil {
			g.poisoned[i] = n.poisoned // the shard decides what ends with it
		}
		if n.snapshot {
			l.saveKeys()
		}
		l.compactionNews(&n)
	}
}

func (g *groupLogs) opened(l *keysLog, o *openedLog) {
	l.opened, l.given, l.base, l.table = true, o.tail, o.base, o.groups.Fold
	l.commit.Store(uint64(o.tail))
	i := g.place(l.which)
	g.tables[i], g.claims[i] = o.groups, reading.NewClaims(foldTable{o.groups.Fold}, decodeGroupRecord)
	o.groups.changed = g.kept.changed
	for _, group := range o.groups.directory.Groups() {
		g.kept.look(group)
	}
}

// count is how many keys the logs that are open have of a group beside its position, and whether they have any.
func (g *groupLogs) count(group string) (keys int, there bool) {
	for _, t := range g.tables {
		if t != nil {
			n, has := t.directory.Count(group)
			keys, there = keys+n, there || has
		}
	}
	return keys, there
}

func (g *groupLogs) openFailed(l *keysLog, err error) {
	l.tried = true
	l.metrics.OpenFailures.Inc()
	l.events.Emit(shardOpenFailed{shard: l.number, name: groupLogName(l), err: err})
	if g.openErr == nil || !isLasting(g.openErr) {
		g.openErr = err
	}
}

// groupLogName is what events call one of the logs.
func groupLogName(l *keysLog) string { return l.name + " (" + l.spec.Kind.String() + ")" }

// isLasting reports whether nothing that this process does will help a log that could not be opened, or has failed.
func isLasting(err error) bool {
	var poisoned *disklog.PoisonedError
	return errors.As(err, &poisoned) || isDamage(err)
}

func (g *groupLogs) append(e shardcore.Append) {
	for _, b := range e.Batches {
		b.Summarize()
	}
	l := g.of(e.Log)
	l.give(e)
	l.given = e.Batches[len(e.Batches)-1].End()
	l.wantSnapshot()
}

func (g *groupLogs) fold(log shardcore.Log, batches []*batch.Batch) {
	i := g.place(log)
	for _, b := range batches {
		if err := g.tables[i].apply(b); err != nil {
			panic("shardactor: a record of our own making: " + err.Error())
		}
	}
	g.kept.lookAgain()
	if n := len(batches); n > 0 {
		g.claims[i].Settle(batches[n-1].End())
	}
}

func (g *groupLogs) readable(log shardcore.Log, end id.Offset) { g.of(log).commit.Store(uint64(end)) }

// work compacts them.
func (g *groupLogs) work(core *shardcore.Core, at shardcore.At) time.Time {
	var next time.Time
	for i, l := range g.logs() {
		if l.opened {
			next = sooner(next, l.compact(core, at, g.claims[i]))
		}
	}
	return next
}

// finish keeps what the logs' keys are for the moment when the files are closed.
func (g *groupLogs) finish() {
	for _, l := range g.logs() {
		if l.opened && l.since >= keysWorth && l.table.Complete() {
			l.last = keyed.NewSnapshot(l.table)
		}
	}
}

// begunLogs are those whose files may be open or on their way.
func (g *groupLogs) begunLogs() []*keysLog {
	var list []*keysLog
	for _, l := range g.logs() {
		if l.isBegun() {
			list = append(list, l)
		}
	}
	return list
}
