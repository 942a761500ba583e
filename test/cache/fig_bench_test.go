package cache

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
)

// asking lets callers ask in turn, each on a stream of its own of one connection, until they have asked n times together.
func asking(t testing.TB, callers, n int, ask func(ctx context.Context, i int) error) {
	t.Helper()
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < n; i += callers {
				if err := ask(context.Background(), i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// requests are those to caches that are measured through QUIC, with 32 callers on 32 streams of one connection.
type requests struct {
	client *client.Client
	names  []string
	value  []byte
}

const busyCallers = 32

// newRequests starts a broker with the caches "logged" and "memory", in which all keys are.
func newRequests(t testing.TB) *requests {
	m := newMeasured(t, cacheOf("logged", 1, true), cacheOf("memory", 1, false))
	m.start()
	r := &requests{client: m.connect(func(o *client.Options) { o.CacheConns, o.CacheStreams = 1, busyCallers }), names: make([]string, 1024), value: make([]byte, 256)}
	for i := range r.names {
		r.names[i] = fmt.Sprintf("key-%d", i)
	}
	for _, cache := range []string{"logged", "memory"} {
		asking(t, busyCallers, len(r.names), r.put(cache))
	}
	return r
}

func (r *requests) put(cache string) func(context.Context, int) error {
	return func(ctx context.Context, i int) error {
		return r.client.CachePut(ctx, namespace, cache, r.names[i%len(r.names)], r.value, 0)
	}
}

func (r *requests) get(cache string) func(context.Context, int) error {
	return func(ctx context.Context, i int) error {
		name := r.names[i%len(r.names)]
		value, found, err := r.client.CacheGet(ctx, namespace, cache, name)
		if err == nil && (!found || len(value) != len(r.value)) {
			err = fmt.Errorf("%s has %d bytes, found %v", name, len(value), found)
		}
		return err
	}
}

// stage is one kind of request, and what it may allocate on both sides together, QUIC included.
type stage struct {
	name string
	ask  func(context.Context, int) error
	most float64
}

func (r *requests) stages() []stage {
	return []stage{
		{"get in memory", r.get("memory"), 36},
		{"get log-backed", r.get("logged"), 38},
		{"put in memory", r.put("memory"), 40},
		{"put log-backed", r.put("logged"), 42},
	}
}

// BenchmarkThroughQUIC is what a request to a cache costs both sides together.
func BenchmarkThroughQUIC(b *testing.B) {
	for _, s := range newRequests(b).stages() {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			b.ResetTimer()
			asking(b, busyCallers, b.N, s.ask)
		})
	}
}

func TestARequestToACacheAllocatesLittleOnBothSidesTogether(t *testing.T) { // mission 204
	asked, slack := 5000, 1.0
	if testkit.Raced { // pools lose at random what is put into them, and all is slow
		asked, slack = 1000, 2
	}
	for _, s := range newRequests(t).stages() {
		asking(t, busyCallers, asked, s.ask)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		asking(t, busyCallers, asked, s.ask)
		runtime.ReadMemStats(&after)
		each := float64(after.Mallocs-before.Mallocs) / float64(asked)
		t.Logf("%s: %.1f allocations of %.0f bytes", s.name, each, float64(after.TotalAlloc-before.TotalAlloc)/float64(asked))
		if each > s.most*slack {
			t.Errorf("%s: %.1f allocations, want at most %v", s.name, each, s.most*slack)
		}
	}
}
