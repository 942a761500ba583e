package client

import (
	"context"
	"sync"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// route is where the requests of one shard go: to its owner if some answer named it, else to the entry, which forwards.
// The order of publishes survives a change of the way: nothing goes the new way while anything is under way on the old.
type route struct {
	share budgetShare // of the client's bytes, under the budget's lock
	// seat says which connection of a pool takes all requests about the groups of the shard: a claim may stand on the connection alone that
	// got it.
	seat uint64

	mu         sync.Mutex
	owner      *target       // nil: the entry
	generation id.Generation // of the newest owner heard of; a lower one is old news
	way        *target       // of the publishes under way
	under      int           // how many those are
	clear      chan struct{} // closed when there are none; nil when nobody waits for it
}

// enter returns the target for a publish, waiting while publishes are under way elsewhere. Whoever got one calls leave.
func (r *route) enter(ctx context.Context, entry *target) (*target, error) {
	for {
		t, wait := r.tryEnter(entry)
		if t != nil {
			return t, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *route) tryEnter(entry *target) (t *target, wait <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t = r.target(entry)
	if r.under == 0 || r.way == t {
		r.way = t
		r.under++
		return t, nil
	}
	if r.clear == nil {
		r.clear = make(chan struct{})
	}
	return nil, r.clear
}

func (r *route) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under--
	if r.under == 0 && r.clear != nil {
		close(r.clear)
		r.clear = nil
	}
}

func (r *route) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.under > 0
}

// current is the target for a request whose order does not matter.
func (r *route) current(entry *target) *target {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.target(entry)
}

func (r *route) target(entry *target) *target {
	if r.owner != nil {
		return r.owner
	}
	return entry
}

// learn takes over who owns the shard, unless that is older than what is known. An owner without an address, or one too
// many, is served through the entry.
func (r *route) learn(c *Client, o wire.Owner) {
	var t *target
	if o.Addr != "" {
		t = c.owners.at(c, o.Addr)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.Generation < r.generation {
		return
	}
	r.owner, r.generation = t, o.Generation
}

// forget sends what comes next through the entry, if it was t that could not serve.
func (r *route) forget(t *target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner == t {
		r.owner = nil
	}
}
