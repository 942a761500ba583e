package cache

import (
	"fmt"
	"testing"

	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/vfs"
)

// What is in memory never meets the disk, on a broker that has one: a burst of publishes, puts and gets makes no call.
//
// mission 274
func TestWhatIsInMemoryMakesNoCallOfTheDisk(t *testing.T) {
	m := newMeasured(t, cacheOf("volatile", 1, false))
	m.start()
	stream := cacheOf("orders", 1, false)
	stream.Name.Kind = route.Stream
	m.caches = append(m.caches, stream)
	m.node.Apply(m.desired())
	c := m.connect()
	testkit.Eventually(t, "the stream is there", func() bool { return m.node.Table.Get(stream.Name) != nil })
	calls := m.fs.Add(vfs.Rule{Name: "*"})
	ctx, cancel := testkit.Within()
	defer cancel()
	for i := range 200 {
		key := fmt.Sprint(i)
		if _, err := c.Publish(ctx, namespace, "orders", []byte(key)); err != nil {
			t.Fatal(err)
		}
		if err := c.CachePut(ctx, namespace, "volatile", key, []byte(key), 0); err != nil {
			t.Fatal(err)
		}
		if got, _, err := c.CacheGet(ctx, namespace, "volatile", key); err != nil || string(got) != key {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if n := calls.Hits(); n > 0 {
		t.Errorf("%d calls of the disk", n)
	}
	calls.Release()
}
