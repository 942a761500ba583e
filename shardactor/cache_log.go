package shardactor

import (
	"errors"
	"fmt"
	"io"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// keysSnapshot is the name of the snapshot of a log's keys.
const keysSnapshot = "keys"

// keysLog is a log of keys, with what is folded from it: one of the two of a log-backed cache's shard, or of a durable stream's groups.
type keysLog struct {
	logFile
	opened bool
	tried  bool      // it could not be opened, once
	told   bool      // the core knows that it is open; of a log of groups
	base   id.Offset // when it was opened
	table  *keyed.Fold
	policy keyed.Policy
	encode keyed.Encoder
	given  id.Offset // end of what was given to be written
	// compactor decides about compactions; nil until there is a table.
	compactor *reading.Compactor
	// needs reports whether something below an offset is still to be read, though no key has it any more; nil if that never is.
	needs  func(below id.Offset) bool
	cut    id.Offset // what is below is to be removed if wanted is set
	wanted bool
	last   *keyed.Snapshot // to be saved when the files are closed
}

// keysEvery is how much is appended between two snapshots of a log's keys, in bytes: what an open has to fold beyond the newest one. Where
// the keys are more than that it is as much as they are, so that saving them costs no more than the writes did.
const keysEvery = 64 << 20

// keysWorth is how much has to be appended for a snapshot to be worth the trouble when the files are closed.
const keysWorth = 1 << 20

// wantSnapshot has the janitor ask for a snapshot if there is enough new.
func (l *keysLog) wantSnapshot() {
	if l.since >= keysEvery && l.since >= l.table.Index().Stats().LogLiveBytes {
		l.dirty.Store(true)
	}
}

// saveKeys saves a snapshot of the keys beside what goes on.
func (l *keysLog) saveKeys() {
	if !l.table.Complete() {
		return
	}
	snap := keyed.NewSnapshot(l.table)
	if l.startSave(func() { l.writeKeys(snap) }) {
		l.since = 0
		l.dirty.Store(false)
	}
}

// errKeysClosed says that the shard ended while its keys were being saved.
var errKeysClosed = errors.New("save keys: they were given back")

// writeKeys writes a snapshot, step by step. It only spares the next open some reading, so that a failure is counted and no more.
func (f *diskFiles) writeKeys(snap *keyed.Snapshot) {
	var buf []byte
	err := f.file.SaveSnapshotFrom(keysSnapshot, func(w io.Writer) (id.Offset, error) {
		for more := true; more; {
			buf, more = snap.Next(buf[:0])
			if _, err := w.Write(buf); err != nil {
				return 0, err
			}
		}
		if snap.Cut() {
			return 0, errKeysClosed
		}
		return snap.Until(), nil
	})
	if err != nil {
		f.metrics.SnapshotsFailed.Inc()
	}
}

// keysOptions are those of the index of a log of this shard.
func (f *diskFiles) keysOptions() keyed.Options {
	return keyed.Options{Budget: f.disks.index, Seed: f.disks.seed(), InlineMax: f.disks.opts.InlineBytes}
}

// foldCache makes a log-backed cache of its log, and foldCounters what a log of counters says.
func foldCache(f *diskFiles, file *disklog.Log) (*openedLog, error) {
	var cache *reading.KeyedCache
	o, err := f.foldKeys(file, func(r io.Reader, base id.Offset, log keyed.Source) (*keyed.Fold, func(*batch.Batch) error, error) {
		var err error
		if r == nil {
			cache = reading.NewKeyedCache(f.keysOptions(), base)
		} else if cache, err = reading.LoadKeyedCache(r, f.keysOptions(), log); err != nil {
			return nil, nil, err
		}
		return cache.Fold(), func(b *batch.Batch) error { return cache.Apply(b, nil) }, nil
	})
	if err != nil {
		if cache != nil {
			cache.Close()
		}
		return nil, err
	}
	o.cache = cache
	return o, nil
}

func foldCounters(f *diskFiles, file *disklog.Log) (*openedLog, error) {
	var counters *reading.Counters
	o, err := f.foldKeys(file, func(r io.Reader, base id.Offset, log keyed.Source) (*keyed.Fold, func(*batch.Batch) error, error) {
		var err error
		if r == nil {
			counters = reading.NewCounters(f.keysOptions(), base)
		} else if counters, err = reading.LoadCounters(r, f.keysOptions(), log); err != nil {
			return nil, nil, err
		}
		return counters.Fold(), counters.Apply, nil
	})
	if err != nil {
		if counters != nil {
			counters.Close()
		}
		return nil, err
	}
	o.counters = counters
	return o, nil
}

// foldKeys folds a log: on from the newest snapshot of its keys, which begin makes a fold of, or all of it, for which begin gets no reader.
func (f *diskFiles) foldKeys(file *disklog.Log, begin func(r io.Reader, base id.Offset, log keyed.Source) (*keyed.Fold, func(*batch.Batch) error, error)) (*openedLog, error) {
	base, _, tail := file.Bounds()
	source := keyed.Source{Base: base, Tail: tail, Batch: func(at id.Offset) (*batch.Batch, error) { return batchAt(file, at) }}
	fold, apply, err := f.loadKeys(file, source, begin)
	if err != nil {
		f.metrics.undecoded.Add(1)
	}
	if fold == nil {
		if fold, apply, err = begin(nil, base, source); err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
	}
	var page []*batch.Batch
	for fold.Next() < tail {
		if page, err = file.ReadInJob(fold.Next(), tail, foldBatches, foldBytes, page); err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
		for _, b := range page {
			if err := apply(b); err != nil {
				return nil, fmt.Errorf("open log: %w", err)
			}
		}
	}
	if !fold.Complete() {
		panic("shardactor: a snapshot of keys is ahead of the log that it was checked against")
	}
	return &openedLog{file: file, base: base, tail: tail}, nil
}

// A log is folded in pages of that many batches and bytes.
const (
	foldBatches = 256
	foldBytes   = 1 << 20
)

// loadKeys makes a fold of the newest snapshot, nil if there is none.
func (f *diskFiles) loadKeys(file *disklog.Log, source keyed.Source, begin func(io.Reader, id.Offset, keyed.Source) (*keyed.Fold, func(*batch.Batch) error, error)) (*keyed.Fold, func(*batch.Batch) error, error) {
	_, r, ok := file.OpenSnapshot(keysSnapshot)
	if !ok {
		return nil, nil, nil
	}
	defer r.Close()
	return begin(r, source.Base, source)
}

// end closes the files, and leaves a last snapshot of the keys unless nobody will open them again.
func (l *keysLog) end(deleted bool, done func(error)) {
	var last func()
	if snap := l.last; snap != nil && !deleted {
		last = func() { l.writeKeys(snap) }
	}
	l.endFiles(last, done)
}

// batchAt reads the batch that holds an offset, in a job.
func batchAt(file *disklog.Log, at id.Offset) (*batch.Batch, error) {
	_, _, tail := file.Bounds()
	got, err := file.ReadInJob(at, tail, 1, 0, nil)
	if err != nil {
		return nil, err
	}
	if len(got) == 0 {
		return nil, fmt.Errorf("nothing is stored at offset %d", at)
	}
	return got[0], nil
}
