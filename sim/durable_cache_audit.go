package main

import "github.com/felixd/felixd/wire"

// auditCaches reads every key and every counter of the present life: what anybody was told of before it began must be there.
func (r *drun) auditCaches() {
	if r.caches == nil {
		return
	}
	life := r.node
	r.audits += len(r.caches.shards)
	for _, s := range r.caches.shards {
		c := r.newClient()
		c.work("audit of a cache", func() {
			if c.auditCache(s, life) && r.node == life {
				r.audits--
				r.marks.hit(dmarkCacheAudit)
			}
		})
	}
}

// auditCache reads a shard of a cache; false when the life that it was for has ended.
func (c *dclient) auditCache(s *cacheShard, life *dnode) bool {
	keys, sums := s.keys, s.sums
	for c.run.node == life && !c.run.finished {
		t := c.connect()
		if t == nil || c.run.node != life {
			return false
		}
		read := false
		for t.idle(0) && len(keys)+len(sums) > 0 {
			read = false
			if len(keys) > 0 {
				t.get(keys[0], func(*wire.CacheValue) error { read = true; return nil })
			} else {
				t.sum(sums[0], func() { read = true })
			}
			if !t.idle(0) || !read {
				break
			}
			if len(keys) > 0 {
				keys = keys[1:]
			} else {
				sums = sums[1:]
			}
		}
		t.close()
		if len(keys)+len(sums) == 0 {
			return true
		}
		if !c.retry() {
			return false
		}
	}
	return false
}

// probeCaches writes to every shard once more: a value and a counter.
func (r *drun) probeCaches() {
	for _, s := range r.cacheShards() {
		c := r.newClient()
		c.work("probe of a cache", func() { c.probeCache(s) })
	}
}

func (c *dclient) probeCache(s *cacheShard) {
	t := c.connect()
	if t == nil {
		c.run.failf("%s: the probe of %s has no connection", c.name, s)
		return
	}
	for _, k := range s.keys {
		if !t.putValue(k, true) || !t.idle(0) || k.writes[len(k.writes)-1].done == never {
			c.run.failf("%s: a put to %s was not acknowledged long after the last fault", c.name, k)
			return
		}
	}
	for _, x := range s.sums {
		if !t.add(x, 1) || !t.idle(0) || x.adds[len(x.adds)-1].done == never {
			c.run.failf("%s: an add to %s was not acknowledged long after the last fault", c.name, s)
			return
		}
	}
	t.close()
}
