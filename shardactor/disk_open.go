package shardactor

import (
	"errors"
	"fmt"
	"time"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// openedLog is what an open has found: everything the shard needs to go on.
type openedLog struct {
	file       *disklog.Log
	base, tail id.Offset
	// producers and state are of a stream's log, cache and counters of those of a cache; the others are nil.
	producers *shardcore.Producers
	state     *reading.State
	cache     *reading.KeyedCache
	counters  *reading.Counters
	// groups is of one of the two logs of groups; grouped says, of a stream's log, that there are such logs beside it.
	groups  *groupTable
	grouped bool
}

// close gives back what the open has made in memory.
func (o *openedLog) close() {
	if o.state != nil {
		o.state.Close()
	}
	if o.cache != nil {
		o.cache.Close()
	}
	if o.counters != nil {
		o.counters.Close()
	}
	if o.groups != nil {
		o.groups.Index().Close()
	}
}

// openLog opens a log, folds what it holds, and hands it to done. It runs in a job and may take as long as reading all of the log does.
func (f *diskFiles) openLog(spec disklog.Spec, done func(*openedLog, error)) {
	check := checking{files: f, since: f.disks.opts.Exec.Now()}
	file, err := f.disks.opts.Store.Open(spec, f, check.progress)
	check.end()
	if err != nil {
		done(nil, err)
		return
	}
	o, err := f.fold(f, file)
	if err != nil {
		file.Close(func(closing error) { done(nil, errors.Join(err, closing)) })
		return
	}
	r := file.Recovery()
	f.metrics.recovered(r)
	if r.TruncatedBytes > 0 || r.Repaired != "" {
		f.events.Emit(logRecovered{shard: f.number, name: f.name, cut: r.TruncatedBytes, repaired: r.Repaired})
	}
	done(o, nil)
}

// checking follows an open that reads a lot: what is left is in a metric, and every while in an event.
type checking struct {
	files *diskFiles
	since time.Time
	left  int64 // as the metric knows it
}

// checkingEvery is the time between two events of one open.
const checkingEvery = 10 * time.Second

func (c *checking) progress(done, total int64) {
	f := c.files
	f.metrics.unchecked.Add(total - done - c.left)
	c.left = total - done
	if now := f.disks.opts.Exec.Now(); now.Sub(c.since) >= checkingEvery {
		c.since = now
		f.events.Emit(logChecking{shard: f.number, name: f.name, done: done, total: total})
	}
}

func (c *checking) end() { c.files.metrics.unchecked.Add(-c.left) }

// foldStream makes the memory of the producers, from their newest snapshot and the headers after it, and the state that commits left.
func foldStream(f *diskFiles, file *disklog.Log) (*openedLog, error) {
	base, _, tail := file.Bounds()
	producers, noted := f.producers(file, base)
	state := reading.NewState(f.disks.state)
	err := file.Headers(base, func(h *segment.BatchHeader, body func() ([]byte, error)) error {
		if h.Base >= noted {
			producers.Note(shardcore.Numbered{Producer: h.ProducerID, Sequence: h.Sequence, Base: h.Base, Count: h.Count, Sum: h.RawSum, Length: h.RawLength})
		}
		if h.Kind != batch.Commit {
			return nil
		}
		b, err := body()
		if err != nil {
			return err
		}
		return state.Apply(&batch.Batch{Base: h.Base, Count: h.Count, Kind: h.Kind, Body: b})
	})
	if err != nil {
		state.Close()
		return nil, fmt.Errorf("open log: %w", err)
	}
	producers.Trim(base)
	grouped, err := f.grouped()
	if err != nil {
		state.Close()
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &openedLog{file: file, base: base, tail: tail, state: state, producers: producers, grouped: grouped}, nil
}

// grouped reports whether there are logs of groups beside a stream's.
func (f *diskFiles) grouped() (bool, error) {
	f.mu.Lock()
	spec := f.spec
	f.mu.Unlock()
	for _, kind := range []disklog.Kind{disklog.Groups, disklog.DeadLetters} {
		spec.Kind = kind
		if there, err := f.disks.opts.Store.Exists(&spec); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// producers returns what the newest snapshot remembers, and the offset from which batches are to be noted.
func (f *diskFiles) producers(file *disklog.Log, base id.Offset) (*shardcore.Producers, id.Offset) {
	if asOf, body, ok := file.Snapshot(producersSnapshot); ok {
		if p, err := shardcore.DecodeProducers(body, asOf); err == nil {
			return p, asOf
		}
		f.metrics.undecoded.Add(1)
	}
	return shardcore.NewProducers(), base
}

// reopening says when a log that could not be opened is tried again.
type reopening struct {
	retries int
	at      time.Time // zero: not at all
}

// openFailed says what a failed open is to the shard, and when to try again if that can help. Waits double: what is in the way, a full disk
// say, is nothing that goes by in an instant.
func (f *diskFiles) openFailed(r *reopening, err error, now time.Time) shardcore.Input {
	f.metrics.OpenFailures.Inc()
	f.events.Emit(shardOpenFailed{shard: f.number, name: f.name, err: err})
	var poisoned *disklog.PoisonedError
	switch {
	case errors.As(err, &poisoned):
		f.report(report{what: shardPoisoned, err: err})
		return shardcore.OpenFailed{Reason: vfs.WithoutFolders(err)}
	case isDamage(err):
		f.report(report{what: shardDamaged, err: err})
		return shardcore.OpenFailed{Reason: vfs.WithoutFolders(err), Damaged: true}
	}
	r.at = now.Add(min(reopenFirst<<r.retries, reopenMax))
	if reopenFirst<<r.retries < reopenMax {
		r.retries++
	}
	return shardcore.OpenFailed{Reason: vfs.WithoutFolders(err)}
}

const (
	reopenFirst = time.Second
	reopenMax   = time.Minute
)

// isDamage reports whether an open failed because of what the disk holds, and not because it could not be read just now.
func isDamage(err error) bool {
	var corrupt *segment.CorruptionError
	var version *segment.VersionError
	var missing *segment.MissingError
	var lost *disklog.MissingError
	var commit *reading.CommitError
	var record *keyed.RecordError
	var body *keyed.BodyError
	return errors.As(err, &record) || errors.As(err, &body) || errors.As(err, &corrupt) || errors.As(err, &version) || errors.As(err, &missing) || errors.As(err, &lost) || errors.As(err, &commit)
}

func writeFailed(log shardcore.Log, f *failedWrite) shardcore.Input {
	return shardcore.WriteFailed{Log: log, Seq: f.seq, Reason: vfs.WithoutFolders(f.err), Full: vfs.IsNoSpace(f.err)}
}
