package shardactor

import (
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// coldRead is the value of a version that is in the log alone, for a delete that answers it.
type coldRead struct {
	known   bool
	version id.Offset
	value   []byte

	at  id.Offset // where it stands
	err error
}

// coldReads are the deletes that wait for a value to be read. A delete is claimed only when what it will answer is at hand: after that
// the value may be compacted away. One job at a time reads them.
type coldReads struct {
	waiting []*CacheDelete
	reading int            // deletes that the job at hand reads
	read    []*CacheDelete // to be judged again
}

// coldMost bounds the deletes that wait for values: as many as the values, of 16 MiB at most, that may be read at a time for one
// shard and are not in any budget.
const coldMost = 16

type coldJob struct{ *diskFiles }

// readCold has the value read that a delete is about to remove. It reports false if too many wait already.
func (d *cacheDisk) readCold(m *CacheDelete) bool {
	c := &d.cold
	if len(c.waiting)+c.reading >= coldMost {
		return false
	}
	c.waiting = append(c.waiting, m)
	d.nextCold()
	return true
}

func (d *cacheDisk) nextCold() {
	c := &d.cold
	if c.reading > 0 || len(c.waiting) == 0 {
		return
	}
	list := c.waiting
	c.reading = len(list)
	c.waiting = nil
	f := &d.values.diskFiles
	f.errand(&f.disks.cold, coldJob{f}, func() {
		for _, m := range list {
			m.cold.value, m.cold.err = f.valueAt(m.cold.at, m.Key)
		}
		f.news.tell(func(t *told) { t.cold = append(t.cold, list...) })
	})
}

// valueAt reads the value of a key in the record at an offset.
func (f *diskFiles) valueAt(at id.Offset, key string) ([]byte, error) {
	b, err := batchAt(f.file, at)
	if err != nil {
		return nil, err
	}
	payload, err := keyed.RecordAt(b, at)
	if err != nil {
		return nil, err
	}
	r, err := reading.DecodeRecord(payload)
	if err != nil {
		return nil, err
	}
	if string(r.Key) != key {
		return nil, &reading.RecordError{What: "the record is of another key"}
	}
	return append([]byte(nil), r.Value...), nil
}

// done takes deletes whose values were looked for.
func (c *coldReads) done(list []*CacheDelete) {
	if len(list) > 0 {
		c.reading = 0
		c.read = append(c.read, list...)
	}
}

// take returns the deletes that are to be judged again.
func (c *coldReads) take() []*CacheDelete {
	list := c.read
	c.read = nil
	return list
}

// coldFailed is the answer to a delete whose value could not be read: nothing was done.
func coldFailed(err error) *wire.Refusal {
	f := wire.Refuse(wire.CodeStorage, "the value could not be read, nothing was removed: "+err.Error()).WithRetry(wire.RetryRetry)
	return &f
}
