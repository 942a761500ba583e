package shardactor

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// sparing is a cache with long-lived keys whose values are in the log alone, and one key that is written all the time.
type sparing struct {
	*diskWorld
	h     *Handle
	acked id.Offset // version of the last put of the hot key that was answered
	value string
}

const sparingKeys = 20

func newSparing(t *testing.T, mem *vfs.Mem) *sparing {
	d := newDiskWorld(t, mem, func(x *diskSetup) { x.store.SegmentBytes, x.disk.InlineBytes = 32<<10, 8 })
	return &sparing{diskWorld: d, h: d.cacheShard("users"), value: strings.Repeat("v", 4000)}
}

func sparingValue(i int) string { return fmt.Sprint("a value that is not kept in memory ", i) }

// write puts the hot key so often, whether that is done or not, and reports whether all were.
func (s *sparing) write(n int) bool {
	good := true
	for range n {
		m := &CachePut{Key: "hot", Value: []byte(s.value)}
		r := newReplies()
		m.To(r, 1)
		if s.h.Ref.TrySend(m, Size(m)) != nil {
			return false
		}
		if a := r.wait(s.t, 1); a.Refusal == nil {
			s.acked = a.Offset
		} else {
			good = false
		}
		s.clock.Advance(time.Millisecond)
	}
	return good
}

// holds checks what is there.
func (s *sparing) holds(what string) {
	s.t.Helper()
	for i := range sparingKeys {
		key := fmt.Sprint("keep", i)
		v, ok := s.h.Cache.Get(key, s.millis())
		if !ok || v.Version != id.Offset(i) {
			s.t.Fatalf("%s: %s is %+v, %v", what, key, v, ok)
		}
		if got := s.settled(s.h, key, v); got != sparingValue(i) {
			s.t.Fatalf("%s: %s is %q", what, key, got)
		}
	}
	if v, ok := s.h.Cache.Get("hot", s.millis()); s.acked > 0 && (!ok || v.Version < s.acked) {
		s.t.Fatalf("%s: the put at %d was answered, and there is %+v, %v", what, s.acked, v, ok)
	}
}

// Any single call of the disk fails while a log is written until it is compacted: nothing that was answered is gone, in this life or the next,
// and unless the shard has ended a compaction comes to its end after all.
//
// matrix G6, G26
func TestNoFailureOfTheDiskInACompactionLosesAKey(t *testing.T) {
	hit := map[vfs.Call]int64{}
	calls := []vfs.Call{vfs.CallWrite, vfs.CallRemove, vfs.CallSync, vfs.CallCreate, vfs.CallRename, vfs.CallRead, vfs.CallSyncDir, vfs.CallOpen, vfs.CallSize}
	last, errs := 61, []error{syscall.ENOSPC, syscall.EIO}
	if !effort.Full() {
		last, errs = 6, errs[:1]
	}
	calls = calls[:unlessRaced(len(calls), 2)]
	for _, call := range calls {
		for _, err := range errs {
			for from := 1; from <= last; from += 5 {
				name := fmt.Sprintf("%s %d fails with %v", call, from, err)
				mem := vfs.NewMem()
				s := newSparing(t, mem)
				for i := range sparingKeys {
					put(t, s.h, fmt.Sprint("keep", i), sparingValue(i))
				}
				s.write(245)
				rule := s.fault.Add(vfs.Rule{Calls: []vfs.Call{call}, Match: func(n string) bool { return strings.Contains(n, "users") }, From: from, Times: 1, Err: err})
				s.write(60)
				if from == 1 && call != vfs.CallSize { // a snapshot of the keys is saved beside, at any time
					s.await(name, func() bool { s.write(1); return rule.Hits() > 0 })
				}
				hit[call] += rule.Hits()
				rule.Remove()
				x, _ := s.table.Get(durableCache("users").Name).Shard(0)
				if s.write(1); x.State == route.Local && s.h.Serving() {
					s.holds(name)
					s.await(name+": a compaction comes to its end", func() bool {
						s.write(1)
						oldest, _ := s.h.Log.Bounds()
						return oldest > sparingKeys || !s.h.Serving()
					})
				}
				image, acked := mem.Clone(), s.acked
				s.stop()
				for _, m := range []*vfs.Mem{image, mem} {
					n := newSparing(t, m)
					n.acked = acked
					n.holds(name + ", after a restart")
					n.stop()
				}
			}
		}
	}
	t.Logf("hits: %v", hit)
	for _, call := range calls {
		if hit[call] == 0 && call != vfs.CallSize {
			t.Errorf("no %s failed", call)
		}
	}
}

// Whatever new file of a log cannot be made, that of the seal of a compaction among them: a put that came while the disk was at it is
// answered, and so is the next one.
func TestAPutBehindAFileThatCannotBeMadeIsAnswered(t *testing.T) {
	for nth := 1; nth <= 4; nth++ {
		s := newSparing(t, vfs.NewMem())
		for i := range sparingKeys {
			put(t, s.h, fmt.Sprint("keep", i), sparingValue(i))
		}
		s.write(240)
		rule := s.fault.Add(vfs.Rule{
			Calls: []vfs.Call{vfs.CallCreate}, Match: func(n string) bool { return strings.Contains(n, "users") && strings.HasSuffix(n, ".log") },
			From: nth, Times: 1, Block: true, Err: syscall.ENOSPC,
		})
		r, sent := newReplies(), shardcore.Token(0)
		send := func() {
			sent++
			m := &CachePut{Key: "hot", Value: []byte(s.value)}
			m.To(r, sent)
			if err := s.h.Ref.TrySend(m, Size(m)); err != nil {
				t.Fatal(err)
			}
		}
		for hit := false; !hit; {
			send()
			select {
			case <-rule.Reached():
				hit = true
			case <-r.ch:
			case <-time.After(patience):
				t.Fatal("neither answered nor at the disk")
			}
		}
		send() // behind it
		ask(t, s.h, &CacheDelete{Key: "absent"})
		rule.Release() // what was sent before that delete is with the log
		send()
		for token := range sent {
			r.wait(t, token+1)
		}
		rule.Remove()
		if !s.write(1) {
			t.Fatalf("file %d: nothing is written any more", nth)
		}
		s.holds("after it")
		s.stop()
	}
}
