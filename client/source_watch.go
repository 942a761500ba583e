package client

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// watchTopic is what is watched of a shard of a cache. Its starts are latest, an offset, or earliest for current values and
// then what changes after those.
type watchTopic struct {
	message wire.CacheWatch // without its start
	options *WatchOptions
	bare    wire.Start // what a start that is not given means
}

// snapshot is current values that come instead of changes, or before them.
type snapshot struct {
	frontier id.Offset           // changes come from here on
	counted  bool                // it is known how many values there are
	left     uint64              // values to come, with counted
	replaces bool                // changes before it are missing
	again    wire.Start          // what to ask for when it broke off
	back     wire.Opt[id.Offset] // where its reader was before
}

func newWatchSource(c *Client, namespace, cache string, shard uint32, o *WatchOptions) *source {
	t := &watchTopic{message: wire.CacheWatch{TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache}, options: o}
	op := o.op(namespace, cache)
	if o.Key != nil {
		t.message.Key = wire.Some(*o.Key)
	} else {
		op += fmt.Sprintf(" shard %d", shard)
		t.message.Prefix, t.message.Shard = wire.Some(o.Prefix), wire.Some(shard)
	}
	if o.Retained {
		t.bare = wire.Start{Kind: wire.StartEarliest}
	}
	s := &source{
		client: c, op: op, shard: shard, topic: t, sparse: true, resume: orDefault(o.Resume, ResumeExact),
		whole: o.Key == nil && o.Shard == nil, route: c.watched.entry(namespace, cache).route(shard),
	}
	s.ctx, s.cancel = context.WithCancel(c.closing)
	return s
}

func (t *watchTopic) request(from wire.Start) opening {
	m := t.message
	o := opening{
		message: &m, bytes: len(m.Namespace) + len(m.Cache) + len(m.Key.V) + len(m.Prefix.V),
		needs: wire.FeatureCacheWatch, feature: "cache watches",
	}
	switch t.start(from).Kind {
	case wire.StartOffset:
		m.FromOffset = wire.Some(from.Offset)
	case wire.StartEarliest:
		m.Retained = true
		o.needs, o.feature = o.needs|wire.FeatureCacheWatchRetained, "retained values on cache watches"
	}
	return o
}

func (t *watchTopic) start(from wire.Start) wire.Start {
	if from.Kind == wire.StartLatest {
		return t.bare
	}
	return from
}

func (t *watchTopic) accept(op string, from wire.Start, answer wire.Message) (wire.Subscribed, *snapshot, error) {
	m, ok := answer.(*wire.CacheWatchStarted)
	if !ok {
		return wire.Subscribed{}, nil, refusalOf(op, answer)
	}
	accepted := wire.Subscribed{SubscriptionID: m.SubscriptionID, StartOffset: wire.Some(m.ResumeOffset)}
	snap := &snapshot{frontier: m.ResumeOffset, counted: m.RetainedCount.Set, left: m.RetainedCount.V, again: wire.Start{Kind: wire.StartEarliest}}
	switch from = t.start(from); from.Kind {
	case wire.StartLatest:
		return accepted, nil, nil
	case wire.StartEarliest:
		if !m.RetainedCount.Set {
			return accepted, nil, &ProtocolError{Op: op, What: "did not say how many current values come"}
		}
		return accepted, snap, nil
	}
	if !m.Resnapshot { // it replays what was missed
		accepted.StartOffset = wire.Some(from.Offset)
		return accepted, nil, nil
	}
	snap.replaces, snap.back = true, wire.Some(from.Offset)
	if !snap.counted {
		snap.again = from
	}
	return accepted, snap, nil
}

// take reads a frame of a watch: a change, or the reason of the end.
func (t *watchTopic) take(s *source, _ *opened, header wire.Header, payload []byte) (piece, bool, error) {
	if header.Flags != 0 {
		return piece{}, false, &ProtocolError{Op: s.op, What: fmt.Sprintf("a frame with flags 0x%04x on a watch", uint16(header.Flags))}
	}
	m, err := wire.DecodeJSON(payload)
	if err != nil {
		return piece{}, false, &ProtocolError{Op: s.op, What: "a message that does not decode", Err: err}
	}
	switch m := m.(type) {
	case *wire.CacheEvent:
		if !t.options.matches(m.Key) {
			return piece{}, false, &ProtocolError{Op: s.op, What: fmt.Sprintf("sent a change of key %q, which is not watched", m.Key)}
		}
		return s.placeChange(m)
	case *wire.CacheWatchLagged:
		return piece{}, false, &SubscriptionLaggedError{Op: s.op, ResumeFrom: m.ResumeFrom}
	case *wire.ShardMoved:
		return piece{}, false, movedError(s.op, m)
	}
	return piece{}, false, refusalOf(s.op, m)
}

// placeChange notes how far a change reaches.
func (s *source) placeChange(m *wire.CacheEvent) (piece, bool, error) {
	s.brought = true
	if s.snap != nil && (s.snap.counted || m.Offset < s.snap.frontier) {
		return s.placeValue(m)
	}
	if m.Offset < s.next || m.Offset == math.MaxUint64 { // behind which there would be nothing to go on from
		return piece{}, false, &ProtocolError{Op: s.op, What: fmt.Sprintf("sent offset %s again, when %s was next", m.Offset, s.next)}
	}
	s.next = m.Offset.Add(1)
	p := piece{item: s.changeItem(m, false), at: wire.Some(s.next)}
	if s.snap != nil { // the first change ends a snapshot that is not counted
		s.endSnapshot()
		s.ahead = append(s.ahead, p)
		return piece{}, false, nil
	}
	return p, true, nil
}

// placeValue takes a value of a snapshot.
func (s *source) placeValue(m *wire.CacheEvent) (p piece, ok bool, err error) {
	if !m.Value.Set {
		return piece{}, false, &ProtocolError{Op: s.op, What: fmt.Sprintf("sent key %q without a value among the current values", m.Key)}
	}
	if ok = m.Offset < s.snap.frontier; ok { // otherwise it comes as a change
		p = piece{item: s.changeItem(m, true)}
	}
	if s.snap.counted {
		if s.snap.left--; s.snap.left == 0 {
			p.at = wire.Some(s.snap.frontier)
			s.endSnapshot()
		}
	}
	return p, ok, nil
}

func (s *source) changeItem(m *wire.CacheEvent, retained bool) *CacheItem {
	s.client.stats.events.Add(1)
	change := CacheChange{
		Shard: s.shard, Key: m.Key, Value: m.Value.V, Deleted: !m.Value.Set, Offset: m.Offset, Retained: retained, Resnapshot: s.anew,
	}
	s.anew = false
	if m.ExpiresAtMillis != 0 && m.Value.Set {
		change.ExpiresAt = time.UnixMilli(int64(min(m.ExpiresAtMillis, math.MaxInt64)))
	}
	return &CacheItem{Kind: ItemEvent, Shard: s.shard, Change: change}
}

// installSnapshot begins the snapshot of a stream that is installed, if it has one.
func (s *source) installSnapshot(o *opened) {
	if o.snap == nil {
		return
	}
	next := *o.snap
	next.replaces = next.replaces || s.snap != nil // one broke off
	s.snap, s.placed, s.next = &next, true, next.frontier
	s.anew = s.anew || next.replaces
	s.ahead = append(s.ahead, piece{item: &CacheItem{
		Kind: ItemSnapshot, Shard: s.shard, Count: next.left, Counted: next.counted, Resnapshot: next.replaces,
	}})
	if next.counted && next.left == 0 {
		s.endSnapshot()
	}
}

// endSnapshot says that all values have come.
func (s *source) endSnapshot() {
	s.ahead = append(s.ahead, piece{item: &CacheItem{Kind: ItemSnapshotEnd, Shard: s.shard}, at: wire.Some(s.snap.frontier)})
	s.snap = nil
}
