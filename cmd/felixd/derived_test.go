package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// All that is not the log itself can be taken away: what a start needs is read from the log.
//
// mission 236
func TestACacheIsRebuiltFromItsLogAlone(t *testing.T) {
	r := start(t, t.TempDir(), "--durable-segment-bytes", "4096", "--cache-inline-bytes", "16", "--durable-fsync-mode", "none")
	c := r.connect(t)
	const keys = 40
	value := func(i int) string { return strings.Repeat(fmt.Sprint(i, " "), 60) }
	for i := range keys {
		putOnce(t, c, "users", fmt.Sprint("key-", i), "old")
		putOnce(t, c, "users", fmt.Sprint("key-", i), value(i))
	}
	if _, _, err := c.CacheDelete(t.Context(), devNamespace, "users", "key-7"); err != nil {
		t.Fatal(err)
	}
	stopped(t, r, c)
	removed := 0
	err := filepath.WalkDir(filepath.Join(r.dir, logFolder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if ext := filepath.Ext(path); ext != ".index" && ext != ".snap" {
			return nil
		}
		removed++
		return os.Remove(path)
	})
	if err != nil || removed == 0 {
		t.Fatalf("%d files were taken away: %v", removed, err)
	}
	r = start(t, r.dir)
	c = r.connect(t)
	for i := range keys {
		want := value(i)
		if i == 7 {
			want = ""
		}
		holds(t, c, "users", fmt.Sprint("key-", i), want)
	}
	stopped(t, r, c)
}

// A cache whose keys have no more room refuses what is new, and keeps all that it has.
//
// mission 238
func TestACacheWhoseKeysHaveNoRoomLosesNone(t *testing.T) {
	r := start(t, t.TempDir(), "--cache-index-bytes", "1048576", "--durable-fsync-mode", "none")
	value := func(i int) string { return fmt.Sprint(i, " ", strings.Repeat("x", 3900)) } // short enough to be kept with its key
	c := r.connect(t)
	putOnce(t, c, "users", "key-0", value(0))
	n := 1
	for ; n < 5000; n++ {
		if err := c.CachePut(t.Context(), devNamespace, "users", fmt.Sprint("key-", n), []byte(value(n)), 0); err != nil {
			break
		}
	}
	if n == 5000 || n < 10 {
		t.Fatalf("%d keys fit into 1 MiB", n)
	}
	for i := range n {
		holds(t, c, "users", fmt.Sprint("key-", i), value(i))
	}
	holds(t, c, "users", fmt.Sprint("key-", n), "")
	stopped(t, r, c)
}
