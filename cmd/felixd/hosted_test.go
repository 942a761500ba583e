package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
)

// Whoever was told that a stream or cache was created can use it at once, however long the disk takes to make its logs.
func TestWhatWasCreatedCanBeUsedAtOnce(t *testing.T) {
	t.Parallel()
	r := start(t, scratch(t).path+"/d")
	c := r.connect(t)
	for i := range 8 {
		name := fmt.Sprint("made", i)
		r.must(t, "POST", devStreamsPath, fmt.Sprintf(`{"stream":%q,"shards":4,"durable":true}`, name))
		if _, err := c.Publish(t.Context(), "default", name, []byte("x")); err != nil {
			t.Fatal(err)
		}
		r.must(t, "POST", devCachesPath, fmt.Sprintf(`{"cache":%q,"shards":4}`, name))
		if err := c.CachePut(t.Context(), "default", name, "k", []byte("v"), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.GroupSeek(t.Context(), "default", "made0", 0, "workers", client.Earliest(), client.GroupSeekOptions{IfNew: true}); err != nil {
		t.Fatal(err)
	}
	if got := r.must(t, "GET", devStreamsPath+"/made0/groups", ""); got != `{"items":[{"group":"workers"}]}`+"\n" && got != `{"items":[{"group":"workers"}]}` {
		t.Errorf("groups: %s", got)
	}
	if code := r.stop(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
