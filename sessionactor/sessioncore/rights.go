package sessioncore

// cacheRights are what a stream knows of its rights to the caches that it read and wrote last. Requests on keys come one after the other to one
// cache, mostly with a right to all of it: then they need not be judged one by one, which takes several look-ups each.
type cacheRights struct{ read, write cacheRight }

// cacheRight is one of them. Grants never change, so it holds as long as the stream.
type cacheRight struct {
	tenant, namespace, name string
	judged                  bool // whole says something: a stream that comes to a cache only once need not know
	whole                   bool // every key is allowed
}

// allows reports whether the token allows the action on the object.
func (s *Stream) allows(a Action, o Object) bool {
	if !o.HasKey {
		return s.grants.Allows(a, o)
	}
	if s.caches == nil {
		s.caches = &cacheRights{}
	}
	c := &s.caches.read
	if a == ActionCacheWrite {
		c = &s.caches.write
	}
	switch {
	case c.name != o.Name || c.namespace != o.Namespace || c.tenant != o.Tenant:
		*c = cacheRight{tenant: o.Tenant, namespace: o.Namespace, name: o.Name}
	case !c.judged:
		c.judged, c.whole = true, s.grants.Allows(a, Object{Tenant: o.Tenant, Namespace: o.Namespace, Name: o.Name, HasPrefix: true})
	}
	return c.whole || s.grants.Allows(a, o)
}
