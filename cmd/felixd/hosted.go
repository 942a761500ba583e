package main

import (
	"context"
	"time"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
)

// hostedMax is how long the answer to a create waits for the shards: their logs are made meanwhile, which takes a few syncs each. After that
// the answer is given all the same, and whoever comes first is told to repeat. Tests have more patience with a disk.
var hostedMax = 5 * time.Second

// hostedPoll is the time between two looks.
const hostedPoll = 2 * time.Millisecond

// awaitHosted waits until a stream or cache that was just created is served, or will not be.
func (d *daemon) awaitHosted(ctx context.Context, kind model.ResourceKind, name model.ResourceName) {
	ctx, cancel := context.WithTimeout(ctx, hostedMax)
	defer cancel()
	n := route.Name{Kind: route.Stream, Tenant: name.Tenant, Namespace: name.Namespace, Name: name.Name}
	if kind == model.ResourceCache {
		n.Kind = route.Cache
	}
	look := time.NewTicker(hostedPoll)
	defer look.Stop()
	for !d.hosted(n) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// hosted reports whether nothing of it is still on its way.
func (d *daemon) hosted(n route.Name) bool {
	e := d.node.Table.Get(n)
	if e == nil {
		return false
	}
	for _, t := range e.Shards() {
		if t.State != route.Local && t.Reason == wire.ReasonNotReady {
			return false
		}
	}
	return true
}

// groups tells the names of the consumer groups of a stream.
func (d *daemon) groups(ctx context.Context, stream model.ResourceName, most int) ([]string, error) {
	return d.node.Groups(ctx, route.Name{Kind: route.Stream, Tenant: stream.Tenant, Namespace: stream.Namespace, Name: stream.Name}, most)
}
