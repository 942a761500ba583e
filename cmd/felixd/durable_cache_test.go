package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store/catalogfile"
)

const devCachesPath = "/v1/tenants/" + devTenant + "/namespaces/" + devNamespace + "/caches"

// putOnce waits until a client may write to a cache, and does.
func putOnce(t *testing.T, c *client.Client, cache, key, value string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; pause(t.Context(), 5*time.Millisecond) {
		err := c.CachePut(t.Context(), devNamespace, cache, key, []byte(value), 0)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// holds fails the test unless a cache has the value for a key; "" is a miss.
func holds(t *testing.T, c *client.Client, cache, key, want string) {
	t.Helper()
	got, found, err := c.CacheGet(t.Context(), devNamespace, cache, key)
	if err != nil || string(got) != want || found != (want != "") {
		t.Errorf("%s has %q for %s, %v, %v, want %q", cache, got, key, found, err, want)
	}
}

// cacheLog is the log that the catalog knows of shard 0 of a cache.
func cacheLog(dir, cache string) (l model.LogID, err error) {
	text, err := os.ReadFile(filepath.Join(dir, catalogfile.Name))
	if err != nil {
		return l, err
	}
	c, err := catalogfile.Decode(text)
	for _, x := range c.Caches {
		if x.Cache == cache {
			l = x.Log(0)
		}
	}
	return l, err
}

// recorded waits until the catalog knows of a log. A daemon that is stopped before has a second to tell it, and leaves it to the next one then.
func recorded(t *testing.T, log func() (model.LogID, error)) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; pause(t.Context(), 5*time.Millisecond) {
		l, err := log()
		if err != nil {
			t.Fatal(err)
		}
		if l != (model.LogID{}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the catalog does not know of a log")
		}
	}
}

// stopped stops a daemon that served a client, in good order.
func stopped(t *testing.T, r *running, c *client.Client) {
	t.Helper()
	closeClient(c)
	if code := r.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, r.err)
	}
}

func TestACacheHasItsEntriesAndCountersAfterARestartAndOneInMemoryHasNot(t *testing.T) {
	r := start(t, t.TempDir())
	r.must(t, "POST", devCachesPath, `{"cache":"volatile","in_memory":true}`)
	c := r.connect(t)
	putOnce(t, c, "users", "alice", "42")
	putOnce(t, c, "volatile", "alice", "42")
	if err := c.CachePut(t.Context(), devNamespace, "users", "ends", []byte("x"), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if sum, err := c.CounterAdd(t.Context(), devNamespace, "users", "hits", 3); err != nil || sum != 3 {
		t.Fatalf("%d, %v", sum, err)
	}
	recorded(t, func() (model.LogID, error) { return cacheLog(r.dir, "users") })
	stopped(t, r, c)
	log, err := cacheLog(r.dir, "users")
	none, noErr := cacheLog(r.dir, "volatile")
	if err != nil || noErr != nil || none != (model.LogID{}) {
		t.Errorf("the catalog knows of log %x for a cache in memory, %v, %v", none, err, noErr)
	}

	r = start(t, r.dir)
	c = r.connect(t)
	holds(t, c, "users", "alice", "42")
	holds(t, c, "users", "ends", "")
	holds(t, c, "volatile", "alice", "")
	if sum, found, err := c.CounterGet(t.Context(), devNamespace, "users", "hits"); err != nil || !found || sum != 3 {
		t.Errorf("the counter is %d, %v, %v", sum, found, err)
	}
	stopped(t, r, c)
	if again, err := cacheLog(r.dir, "users"); err != nil || again != log {
		t.Errorf("the log was %x and is %x, %v", log, again, err)
	}
}

// Without storage the same catalog is served, its caches begin empty, and that is told; with storage again nothing is lost.
func TestAKeptCacheIsEmptyWithoutStorageAndThereAgainWithIt(t *testing.T) {
	r := start(t, t.TempDir())
	c := r.connect(t)
	putOnce(t, c, "users", "alice", "42")
	recorded(t, func() (model.LogID, error) { return cacheLog(r.dir, "users") })
	stopped(t, r, c)

	r = start(t, r.dir, "--durable-storage-dir", noStorage)
	c = r.connect(t)
	holds(t, c, "users", "alice", "")
	putOnce(t, c, "users", "alice", "43")
	if text := r.err.String(); !strings.Contains(text, "begins empty, in memory") || !strings.Contains(text, "cache="+devTenant+"/"+devNamespace+"/users") {
		t.Errorf("it is not told:\n%s", text)
	}
	stopped(t, r, c)

	r = start(t, r.dir)
	c = r.connect(t)
	holds(t, c, "users", "alice", "42")
	stopped(t, r, c)
}

// A cache whose log is gone is not begun anew behind the operator's back.
func TestACacheWhoseLogIsGoneEndsTheDaemonUntilItIsDeleted(t *testing.T) {
	r := start(t, t.TempDir())
	r.must(t, "POST", devCachesPath, `{"cache":"lost"}`)
	c := r.connect(t)
	putOnce(t, c, "lost", "alice", "42")
	recorded(t, func() (model.LogID, error) { return cacheLog(r.dir, "lost") })
	stopped(t, r, c)
	gone, err := filepath.Glob(filepath.Join(r.dir, logFolder, "caches", "*_lost_*"))
	if err != nil || len(gone) != 1 {
		t.Fatalf("%q, %v", gone, err)
	}
	if err := os.RemoveAll(gone[0]); err != nil {
		t.Fatal(err)
	}
	if code, text := fails(t, r.dir); code != exitDamaged || !strings.Contains(text, "log_missing") || !strings.Contains(text, "lost") {
		t.Fatalf("exit code %d: %s", code, text)
	}
	r = start(t, r.dir, "--durable-quarantine-damaged")
	c = r.connect(t)
	putOnce(t, c, "users", "bob", "1")
	if _, _, err := c.CacheGet(t.Context(), devNamespace, "lost", "alice"); err == nil {
		t.Error("a get from a cache whose log is gone is answered")
	}
	r.must(t, "DELETE", devCachesPath+"/lost", "")
	if code, _ := r.api(t, "GET", devCachesPath+"/lost", ""); code != http.StatusNotFound {
		t.Errorf("deleted and there: %d", code)
	}
	stopped(t, r, c)
	r = start(t, r.dir)
	if code := r.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, r.err)
	}
}
