package main

import (
	"errors"
	"testing"

	"github.com/felixd/felixd/client"
)

// Without storage caches and streams are in memory alone, and groups are not offered.
//
// mission 234, mission 260, mission 275
func TestWithoutStorageARestartLosesAllAndNoGroupsAreServed(t *testing.T) {
	r := start(t, t.TempDir(), "--durable-storage-dir", noStorage)
	c := r.connect(t)
	putOnce(t, c, "users", "alice", "42")
	holds(t, c, "users", "alice", "42")
	if _, err := c.Publish(t.Context(), devNamespace, devStreams[0], []byte("before")); err != nil {
		t.Fatal(err)
	}
	if got := r.offered(t).ServerFeatures.V & groupFeatures; got != 0 {
		t.Errorf("groups are advertised: %x", got)
	}
	if _, err := c.GroupPoll(t.Context(), devNamespace, devStreams[0], 0, "workers", client.GroupPollOptions{}); !errors.Is(err, client.ErrUnsupported) {
		t.Errorf("a poll: %v, want that the broker does not offer it", err)
	}
	stopped(t, r, c)

	r = start(t, r.dir, "--durable-storage-dir", noStorage)
	c = r.connect(t)
	holds(t, c, "users", "alice", "")
	sub, err := c.Subscribe(t.Context(), devNamespace, devStreams[0], client.SubscribeOptions{From: client.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), devNamespace, devStreams[0], []byte("after")); err != nil {
		t.Fatal(err)
	}
	if e, err := sub.Next(t.Context()); err != nil || string(e.Payload) != "after" {
		t.Errorf("from the earliest record on there is %q, %v", e.Payload, err)
	}
	stopped(t, r, c)
}
