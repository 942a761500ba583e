package main

import (
	"time"
)

// cacheShards are those of the log-backed caches of this world.
func (r *drun) cacheShards() []*cacheShard {
	if r.caches == nil {
		return nil
	}
	return r.caches.shards
}

// useCaches lets clients and watchers of caches go.
func (r *drun) useCaches() {
	if r.caches == nil {
		return
	}
	rand := r.world.Rand()
	for range r.plan.Cache.Clients {
		c := r.newClient()
		c.work("caching", c.caching)
	}
	c := r.newClient()
	c.work("remembering", c.remembering)
	for _, s := range r.caches.shards {
		s.history = &dwatch{shard: s, prefix: true}
		r.watch(s.history, 0)
		for range 1 + rand.IntN(2) {
			x := &dwatch{shard: s, prefix: rand.IntN(3) > 0, name: []string{"", "a", "b"}[rand.IntN(3)], retained: rand.IntN(2) == 0}
			if !x.prefix && len(s.keys) > 0 {
				x.name = s.keys[rand.IntN(len(s.keys))].name
			}
			x.prefix = x.prefix || x.name == "" || len(s.keys) == 0
			if rand.IntN(2) == 0 {
				x.pause = time.Duration(1 + rand.Int64N(int64(20*time.Millisecond)))
			}
			if rand.IntN(2) == 0 {
				x.stint, x.away = 1+rand.IntN(20), []time.Duration{20 * time.Millisecond, time.Second}[rand.IntN(2)]
			}
			r.watch(x, []time.Duration{0, 50 * time.Millisecond, 500 * time.Millisecond}[rand.IntN(3)])
		}
	}
}

// watch lets a watcher go, up to so much later.
func (r *drun) watch(x *dwatch, later time.Duration) {
	c := r.newClient()
	c.launch("watcher", func() {
		if later == 0 || c.sleep(later) {
			c.watching(x)
		}
	})
}

// cachesLost notes what power cuts have left of the caches, before anybody is let in.
func (r *drun) cachesLost() {
	for _, s := range r.cacheShards() {
		end := s.left
		s.reaches(end)
		for _, v := range r.snapshots {
			v.whole = v.whole && (v.of.shard != s || v.frontier <= end)
		}
		for _, x := range r.watches {
			if x.shard != s {
				continue
			}
			for o := end; o < x.next; o++ {
				delete(x.got, o)
			}
			x.since = min(x.since, end)
			x.ahead = x.ahead || x.next > end
		}
	}
}
