package testbroker

import (
	"sync"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// log is one shard of a stream.
type log struct {
	mu         sync.Mutex
	base, tail id.Offset
	records    []record      // from base to tail, with holes where Skip made them
	more       chan struct{} // closed and replaced with each append
	producers  map[uint64]*producer
	state      map[stateKey]stateValue
	asOf       wire.Opt[id.Offset] // of the last commit
	groups     map[string]*group
}

// record is one record of a log.
type record struct {
	offset  id.Offset
	payload []byte
	at      time.Time
}

func newLogs(shards uint32) []*log {
	logs := make([]*log, shards)
	for i := range logs {
		logs[i] = &log{more: make(chan struct{}), producers: make(map[uint64]*producer), state: make(map[stateKey]stateValue), groups: make(map[string]*group)}
	}
	return logs
}

func (l *log) append(r wire.Region) (first id.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(r, time.Now())
}

// add is append with the lock held.
func (l *log) add(r wire.Region, at time.Time) (first id.Offset) {
	first = l.tail
	for p, rest, ok := r.Next(); ok; p, rest, ok = rest.Next() {
		l.records = append(l.records, record{l.tail, p, at})
		l.tail = l.tail.Add(1)
	}
	l.ring()
	return first
}

func (l *log) ring() {
	close(l.more)
	l.more = make(chan struct{})
}

// next returns up to n records with consecutive offsets, the first of them at or after an offset; how many offsets before it
// hold nothing; and a channel that tells when there are more. gone says that records from there on were trimmed.
func (l *log) next(at id.Offset, n int) (records []record, skipped uint64, more <-chan struct{}, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at < l.base {
		return nil, 0, l.more, true
	}
	i := l.find(at)
	if i == len(l.records) {
		return nil, 0, l.more, false
	}
	end := i + 1
	for end < len(l.records) && end-i < n && l.records[end].offset == l.records[end-1].offset.Add(1) {
		end++
	}
	return l.records[i:end], l.records[i].offset.Since(at), l.more, false
}

// find is the index of the first record at or after an offset. The lock is held.
func (l *log) find(at id.Offset) int {
	i := 0
	for i < len(l.records) && l.records[i].offset < at {
		i++
	}
	return i
}

func (l *log) bounds() (base, tail id.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.base, l.tail
}

// cursor checks where a reader wants to begin; nil when that can be served.
func (l *log) cursor(at id.Offset) *wire.SubscribeCursorError {
	base, tail := l.bounds()
	switch {
	case at < base:
		return &wire.SubscribeCursorError{Reason: wire.CursorTooOld, Requested: at, Available: base}
	case at > tail:
		return &wire.SubscribeCursorError{Reason: wire.CursorInFuture, Requested: at, Available: tail}
	}
	return nil
}

// Append adds records to a shard of a stream, "namespace/stream", as a publish would, and returns the position of the first.
func (b *Broker) Append(stream string, shard uint32, records wire.Region) (first int) {
	return int(b.logs[stream][shard].append(records))
}

// AppendAt is Append with an append time of the test's own.
func (b *Broker) AppendAt(stream string, shard uint32, records wire.Region, at time.Time) (first int) {
	l := b.logs[stream][shard]
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.add(records, at))
}

// Skip leaves n offsets of a shard without a record.
func (b *Broker) Skip(stream string, shard uint32, n uint64) {
	l := b.logs[stream][shard]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = l.tail.Add(n)
	l.ring()
}

// Trim drops the records below an offset, as retention does.
func (b *Broker) Trim(stream string, shard uint32, base id.Offset) {
	l := b.logs[stream][shard]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = l.records[l.find(base):]
	l.base = max(l.base, base)
	l.tail = max(l.tail, base)
}

// Payloads are the records of a shard, as text.
func (b *Broker) Payloads(stream string, shard uint32) []string {
	l := b.logs[stream][shard]
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]string, len(l.records))
	for i, r := range l.records {
		all[i] = string(r.payload)
	}
	return all
}
