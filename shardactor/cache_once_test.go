package shardactor

import (
	"errors"
	"testing"
	"time"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// remade deletes a cache and makes it again, as another incarnation.
func (d *diskWorld) remade(name string, incarnation id.Incarnation) *Handle {
	d.t.Helper()
	again := durableCache(name)
	again.Incarnation, again.Generation = incarnation, id.Generation(incarnation)
	d.desire()
	d.desire(again)
	return d.target(again.Name, 0, func(x Target) bool { return x.State == route.Local && x.Generation == id.Generation(incarnation) }).Shard
}

// from takes a place in a shard's log.
func (h *Handle) from(at id.Offset) error {
	c, err := h.Log.Register(storage.CursorOptions{Start: storage.StartOffset, Offset: at, Capacity: 16, Ring: func() {}})
	if err == nil {
		c.Release()
	}
	return err
}

func TestAVersionDoesNotOutliveItsCache(t *testing.T) {
	byTheClock := func(x *diskSetup) { x.disk.CacheBase = nil }
	for name, change := range map[string]func(*diskSetup){"by the clock": byTheClock, "although the clock is of no use": func(*diskSetup) {}} {
		t.Run(name, func(t *testing.T) {
			d := newDiskWorld(t, vfs.NewMem(), change)
			h := d.cacheShard("users")
			put(t, h, "k", "first") // so that the next version is not 0, from where a watch begins at the beginning
			read := put(t, h, "k", "mine")
			_, seen := h.Log.Bounds()
			for again := id.Incarnation(2); again < 5; again++ {
				h = d.remade("users", again)
				for _, place := range []id.Offset{read, seen} {
					if err := h.from(place); !is[*storage.TooOldError](err) {
						t.Errorf("a watch goes on in another cache, at %d: %v", place, err)
					}
				}
				if now := put(t, h, "k", "theirs"); now < seen {
					t.Errorf("version %d of the new cache, and %d of the one before it", now, read)
				}
				if a := ask(t, h, &CachePutIf{Key: "k", Value: []byte("over theirs"), HasVersion: true, Version: read}); a.Applied {
					t.Errorf("a put on version %d of the deleted cache was applied to the new one: k is %s", read, d.get(h, "k"))
				}
			}
		})
	}
}

// A cache that is there keeps its offsets, whatever the clock says when it is opened.
func TestACacheKeepsItsVersionsWhereverNewOnesBegin(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	put(t, d.cacheShard("users"), "k", "v")
	d.stop()
	d = newDiskWorld(t, d.mem, func(x *diskSetup) { x.disk.CacheBase = nil })
	h := d.cacheShard("users")
	if got := d.get(h, "k"); got != "v@0" {
		t.Error(got)
	}
	if at := put(t, h, "k", "w"); at != 1 {
		t.Errorf("the next put is at %d", at)
	}
}

// In the modes in which a power cut takes back what was told, neither versions nor places are given again; in the other one, and where the
// process ended in order or nothing was lost with it, the log goes on as if nothing had been.
func TestAVersionThatWasLostIsNotGivenAgain(t *testing.T) {
	for _, mode := range []disklog.FsyncMode{disklog.OnCommit, disklog.Periodic, disklog.None} {
		t.Run(mode.String(), func(t *testing.T) {
			change := func(x *diskSetup) { x.store.Fsync, x.store.FsyncInterval = mode, time.Hour }
			d := newDiskWorld(t, vfs.NewMem(), change)
			put(t, d.cacheShard("users"), "k", "base")
			d.stop()
			d = newDiskWorld(t, d.mem, change)
			h := d.cacheShard("users")
			read := put(t, h, "k", "mine")
			if read != 1 {
				t.Fatalf("after an end in order the next offset is %d", read)
			}
			_, seen := h.Log.Bounds()
			killed, image := d.mem.Clone(), d.mem.CrashHard()
			d.stop()

			d = newDiskWorld(t, killed, change)
			h = d.cacheShard("users")
			if got := d.get(h, "k"); got != "mine@1" || h.from(0) != nil || h.from(seen) != nil {
				t.Errorf("after a kill k is %s, %v, %v", got, h.from(0), h.from(seen))
			}
			d.stop()

			d = newDiskWorld(t, image, change)
			h = d.cacheShard("users")
			lost := mode != disklog.OnCommit
			if err := h.from(seen); lost != is[*storage.TooOldError](err) {
				t.Errorf("a watch that was told of what is lost goes on at %d: %v", seen, err)
			}
			if err := h.from(1); err != nil {
				t.Errorf("a watch that was told of nothing that is lost does not go on: %v", err)
			}
			theirs := put(t, h, "k", "theirs")
			if lost && theirs <= seen || !lost && theirs != seen {
				t.Errorf("the next version is %d", theirs)
			}
			if a := ask(t, h, &CachePutIf{Key: "k", Value: []byte("over theirs"), HasVersion: true, Version: read}); a.Applied {
				t.Errorf("a put on the lost version %d was applied over what somebody else put: %s", read, d.get(h, "k"))
			}
			d.stop()
			d = newDiskWorld(t, d.mem, change) // and it is not forgotten
			if err := d.cacheShard("users").from(seen); lost != is[*storage.TooOldError](err) {
				t.Errorf("after another start: %v", err)
			}
		})
	}
}

func is[T error](err error) bool {
	var e T
	return errors.As(err, &e)
}
