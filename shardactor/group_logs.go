package shardactor

import (
	"errors"
	"io"
	"math"
	"time"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// groupLogs are the two logs of the consumer groups of a durable stream's shard, cursors and dead letters, beside its main log. They are made
// when a group is asked for the first time, and opened with the shard from then on. What is wrong with them when they are opened is the
// groups' trouble, and the stream goes on; a sync that fails later ends the shard like one of its main log, which is on the same device.
type groupLogs struct {
	cursors, dead keysLog
	claims        [2]*reading.Claims // nil until it is open
	void          [2]id.Offset       // where the claims that were voided in this turn begin
	begun         bool
	failed        error // why they could not be opened, the last time; nil if they were, or nobody tried
	lasting       bool  // and trying again will not help
}

func newGroupLogs(o diskOptions) *groupLogs {
	g := &groupLogs{}
	o.fold = foldGroups
	for i, kind := range []disklog.Kind{disklog.Groups, disklog.DeadLetters} {
		l := g.logs()[i]
		*l = keysLog{logFile: logFile{diskFiles: diskFiles{diskOptions: o}}, policy: keyed.CounterPolicy(), encode: encodeGroupMove}
		l.spec.Kind, l.spec.Log, l.spec.Retention, l.spec.Compress = kind, id.LogID{}, disklog.Retention{}, false
	}
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
	g.begun, g.failed = true, nil
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

// take steps the core through what the disk has told of the two logs. It reports whether they were opened, or could not be.
func (g *groupLogs) take(core *shardcore.Core, at shardcore.At) (decided bool) {
	for i, l := range g.logs() {
		n := l.news.take()
		switch {
		case n.opened != nil:
			g.opened(l, n.opened)
			core.Step(at, shardcore.LogOpened{Log: l.which, Tail: n.opened.tail})
			decided = true
		case n.openErr != nil:
			g.openFailed(l, n.openErr)
			decided = true
		}
		g.void[i] = math.MaxUint64
		l.complete(core, at, &n, func() { l.given = min(core.Tail(l.which), g.void[i]) })
		if n.trimmed > 0 {
			core.Step(at, shardcore.Trimmed{Log: l.which, Base: n.trimmed})
		}
		l.poison(core, at, n.poisoned)
		if n.snapshot {
			l.saveKeys()
		}
		l.compactionNews(&n)
	}
	return decided
}

func (g *groupLogs) opened(l *keysLog, o *openedLog) {
	l.opened, l.given, l.base, l.table = true, o.tail, o.base, o.groups
	l.commit.Store(uint64(o.tail))
	g.claims[g.place(l.which)] = reading.NewClaims(foldTable{o.groups}, decodeGroupRecord)
}

func (g *groupLogs) openFailed(l *keysLog, err error) {
	l.metrics.OpenFailures.Inc()
	l.events.Emit(shardOpenFailed{shard: l.number, name: l.name + " (" + l.spec.Kind.String() + ")", err: err})
	var poisoned *disklog.PoisonedError
	g.failed, g.lasting = err, errors.As(err, &poisoned) || isDamage(err)
	g.begun = g.lasting
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
	l := g.of(log)
	for _, b := range batches {
		if err := l.table.Apply(b, nil); err != nil {
			panic("shardactor: a record of our own making: " + err.Error())
		}
	}
	if n := len(batches); n > 0 {
		g.claims[g.place(log)].Settle(batches[n-1].End())
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

// end closes the files.
func (g *groupLogs) end(deleted bool, done func(error)) {
	for _, l := range g.begunLogs() {
		var last func()
		if snap := l.last; snap != nil && !deleted {
			last = func() { l.writeKeys(snap) }
		}
		l.endFiles(last, done)
	}
}

// state is what the logs say of one group.
func (g *groupLogs) state(group string) (*groupcore.State, error) {
	prefix := groupcore.AppendKeyPrefix(nil, group)
	s := groupcore.NewState(group)
	for _, l := range g.logs() {
		var err error
		for c := (keyed.Cursor)(0); ; {
			c = l.table.Index().Scan(c, prefix, func(e keyed.Entry) {
				if err == nil {
					err = s.Add(e.Key, e.Value)
				}
			})
			if c.Done() {
				break
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// foldGroups makes the table of a log of groups.
func foldGroups(f *diskFiles, file *disklog.Log) (*openedLog, error) {
	var fold *keyed.Fold
	o, err := f.foldKeys(file, func(r io.Reader, base id.Offset, log keyed.Source) (*keyed.Fold, func(*batch.Batch) error, error) {
		var err error
		if r == nil {
			fold = keyed.NewFold(keyed.NewIndex(f.groupOptions()), decodeGroupRecord, base)
		} else if fold, err = keyed.Load(r, f.groupOptions(), decodeGroupRecord, log); err != nil {
			return nil, nil, err
		}
		return fold, func(b *batch.Batch) error { return fold.Apply(b, nil) }, nil
	})
	if err != nil {
		if fold != nil {
			fold.Index().Close()
		}
		return nil, err
	}
	o.groups = fold
	return o, nil
}

// groupOptions are those of the index of a log of groups: all values are short, and are kept.
func (f *diskFiles) groupOptions() keyed.Options {
	o := f.keysOptions()
	o.InlineMax = keyed.DefaultInlineMax
	return o
}

// decodeGroupRecord is the keyed.Decoder of both logs.
func decodeGroupRecord(payload []byte, _ id.Offset, _ keyed.Lookup) (keyed.Change, error) {
	r, err := groupcore.DecodeRecord(payload)
	if err != nil {
		return keyed.Change{}, err
	}
	switch r.Op {
	case groupcore.Delete:
		return keyed.Change{Kind: keyed.Delete, Key: r.Key}, nil
	case groupcore.Moved:
		return keyed.Change{Kind: keyed.Move, Key: r.Key, Value: r.Value, Version: r.Version}, nil
	}
	return keyed.Change{Kind: keyed.Put, Key: r.Key, Value: r.Value}, nil
}

// encodeGroupMove is the keyed.Encoder of both.
func encodeGroupMove(dst []byte, e keyed.Entry) []byte {
	return groupcore.AppendPayload(dst, groupcore.Record{Op: groupcore.Moved, Version: e.Version, Key: e.Key, Value: e.Value})
}

// foldTable is a fold as claims look at it.
type foldTable struct{ fold *keyed.Fold }

// Find implements reading.Table.
func (t foldTable) Find(key []byte, nowMillis uint64) (reading.Live, bool) {
	e, ok := t.fold.Index().Get(key, nowMillis, nil)
	return reading.Live{Value: e.Value, Cold: e.Cold, Version: e.Version, Offset: e.Offset, ExpiresAtMillis: e.ExpiresAtMillis}, ok
}

// Stat implements reading.Table.
func (t foldTable) Stat(key []byte, nowMillis uint64) (reading.Live, bool) {
	l, ok := t.Find(key, nowMillis)
	l.Value = nil
	return l, ok
}
