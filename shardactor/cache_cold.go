package shardactor

import (
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// A delete answers the value that it removes. It is claimed in its turn whether that is in memory or not, since who sent it may have sent a put of
// the key behind it. What is not in memory, or found no room there, is read when the delete is stored: until then the key's entry keeps a compaction
// from removing it, and then the list of those that are to be read does.

// removed is what a delete is about to answer.
type removed struct {
	late  bool // it is read when the delete is stored
	at    id.Offset
	bytes int64 // how long the value is
	held  int64 // what is booked for it
	value []byte
	err   error
}

// coldReads are the deletes whose values are to be read. One job of a shard at a time reads some of them.
//
//  1. late counts the deletes that were claimed with a value to be read and are not answered;
//  2. stored holds, in the order of their offsets, those of them that are done but for the value; the first reading of them are in the hands of a job;
//  3. asked says that the share waits for room for the first one.
type coldReads struct {
	late    int
	stored  []*CacheDelete
	reading int
	read    int // of reading, once they are to be answered
	asked   bool
	share   roomShare
}

const (
	// coldMost bounds the deletes of a shard whose values are to be read. They hold their requests, which their senders have permits for.
	coldMost = 4096
	// coldTogether is how many values one job reads, if there is room for them.
	coldTogether = 16
	// coldPause is how long a delete beyond coldMost is told to wait, in milliseconds.
	coldPause = 20
)

type coldJob struct{ *diskFiles }

// remove has what a delete is about to answer kept, or read later. It refuses the delete if too many wait for that.
func (d *cacheDisk) remove(m *CacheDelete, x *reading.Decision) *wire.Refusal {
	c := &d.cold
	m.removed = removed{late: x.Cold, at: x.Offset, bytes: int64(x.ValueBytes)}
	if !x.Cold && (x.ValueBytes == 0 || c.share.keep(m.removed.bytes)) {
		m.removed.held, m.removed.value = m.removed.bytes, x.Value
		m.done = func() { d.answered(m) }
		return nil
	}
	m.removed.late = true
	if c.late >= coldMost {
		f := wire.Refuse(wire.CodeOverloaded, "too many deletes wait for the values they remove to be read; repeat the request").WithReason(wire.ReasonPublishQueueFull, coldPause)
		return &f
	}
	c.late++
	m.later = func(a Answer) {
		m.judged = a
		c.stored = append(c.stored, m)
		d.readCold()
	}
	m.done = func() { d.answered(m) }
	return nil
}

// answered lets go of what a delete answers. Its message may lie in memory for long, with its batch.
func (d *cacheDisk) answered(m *CacheDelete) {
	if m.removed.late {
		d.cold.late--
	}
	d.cold.share.give(m.removed.held)
	m.removed, m.judged, m.later = removed{}, Answer{}, nil
}

// readCold has a job read what there is room for.
func (d *cacheDisk) readCold() {
	c := &d.cold
	if c.reading > 0 || c.asked || len(c.stored) == 0 {
		return
	}
	if c.asked = !c.share.take(c.stored[0].removed.bytes); !c.asked {
		d.beginCold()
	}
}

// beginCold begins the job; there is room for the first value.
func (d *cacheDisk) beginCold() {
	c := &d.cold
	n := 1
	for n < min(len(c.stored), coldTogether) && c.share.more(c.stored[n].removed.bytes) {
		n++
	}
	list := c.stored[:n:n]
	for _, m := range list {
		m.removed.held = m.removed.bytes
	}
	c.reading = n
	f := &d.values.diskFiles
	f.errand(&f.disks.cold, coldJob{f}, func() {
		for _, m := range list {
			m.removed.value, m.removed.err = f.valueAt(m.removed.at, m.Key)
		}
		f.news.tell(func(t *told) { t.cold = n })
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

// coldNews takes what the disk and the node's room have told.
func (d *cacheDisk) coldNews(n *told) {
	c := &d.cold
	if n.room {
		c.asked = false
		d.beginCold()
	}
	c.read += n.cold
}

// answerCold answers the deletes whose values were looked for.
func (s *Shard) answerCold() {
	d, ok := s.log.(*cacheDisk)
	if !ok || d.cold.read == 0 {
		return
	}
	c := &d.cold
	list := c.stored[:c.read:c.read]
	c.stored, c.reading, c.read = c.stored[c.read:], 0, 0
	for _, m := range list {
		s.busy = &m.request
		a := m.judged
		if a.Value = m.removed.value; m.removed.err != nil {
			a = Answer{Refusal: coldFailed(m.removed.err)}
		}
		s.settle(&m.request, a)
	}
	clear(list)
	d.readCold()
	d.values.retain()
}

// owesValues reports whether deletes that are stored wait for what they answer.
func (s *Shard) owesValues() bool {
	d, ok := s.log.(*cacheDisk)
	return ok && len(d.cold.stored) > 0
}

// coldFailed is the answer to a delete whose value could not be read. It is no "nothing was done".
func coldFailed(err error) *wire.Refusal {
	f := wire.Refuse(wire.CodeStorage, "the key was removed, and the value that it had could not be read: "+vfs.WithoutFolders(err))
	return &f
}

// needs reports whether a value below an offset is still to be read.
func (c *coldReads) needs(below id.Offset) bool {
	for _, m := range c.stored {
		if m.removed.at < below {
			return true
		}
	}
	return false
}
