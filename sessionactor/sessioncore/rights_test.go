package sessioncore

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// keyed grants what a token may name: whole caches, and keys that begin with a prefix, for each action.
type keyed struct {
	rights
	whole    map[string]bool // "action cache"
	prefixes map[string]string
	asked    int
}

func (g *keyed) Allows(a Action, o Object) bool {
	g.asked++
	name := a.String() + " " + o.Name
	if g.whole[name] {
		return true
	}
	prefix, ok := g.prefixes[name]
	return ok && (o.HasKey && strings.HasPrefix(o.Key, prefix) || o.HasPrefix && strings.HasPrefix(o.Prefix, prefix))
}

// Whatever a stream remembers of its rights, each request is decided as its token says: by action, cache and key.
func TestEachKeyIsJudgedByWhatTheTokenAllowsWhateverWasAskedBefore(t *testing.T) {
	g := &keyed{
		whole: map[string]bool{"cache.read a": true, "cache.write b": true}, prefixes: map[string]string{"cache.write a": "x/", "cache.read c": "y/"},
	}
	s := open(t, todayOffered(), g)
	r := rand.New(rand.NewPCG(7, 11))
	for range 2000 {
		cache, key := string("abcd"[r.IntN(4)]), []string{"x/1", "y/1", "x", ""}[r.IntN(4)]
		action, frame := ActionCacheRead, text(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":%q,"key":%q}`, cache, key)
		if r.IntN(2) == 0 {
			action, frame = ActionCacheWrite, text(`{"type":"cache_delete","tenant_id":"t1","namespace":"default","cache":%q,"key":%q}`, cache, key)
		}
		want := g.Allows(action, Object{Tenant: tenant, Namespace: namespace, Name: cache, Key: key, HasKey: true})
		q := s.Frame(frame)
		if got := q.Do == Ask; got != want {
			t.Fatalf("%s of %q in %s is taken: %v, want %v", action, key, cache, got, want)
		}
		if q.Do == Ask {
			s.Settle(q.Token, Answer{})
		}
		s.Sent()
		if r.IntN(50) == 0 {
			s.Rest()
		}
	}
}

// Keys of a cache to all of which there is a right are not judged one by one.
func TestARightToAWholeCacheIsAskedForOnce(t *testing.T) {
	g := &keyed{whole: map[string]bool{"cache.read a": true, "cache.write a": true}}
	s := open(t, todayOffered(), g)
	for range 100 {
		for _, typ := range []string{"cache_get", "cache_delete"} {
			s.Settle(s.Frame(text(`{"type":%q,"tenant_id":"t1","namespace":"default","cache":"a","key":"k"}`, typ)).Token, Answer{})
		}
	}
	if g.asked != 2+2 { // for the first key, and then for all
		t.Errorf("%d questions for 200 keys of a cache", g.asked)
	}
	s.Rest()
	if s.caches != nil {
		t.Error("a stream that rests keeps its rights to caches")
	}
}
