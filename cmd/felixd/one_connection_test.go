package main

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/felixd/felixd/client"
)

// A stream, its queue and a cache are used over one and the same connection.
//
// mission 340, mission 385
func TestStreamsQueuesAndCachesShareOneConnection(t *testing.T) {
	r := start(t, t.TempDir())
	defer r.stop(t)
	r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	c := r.connect(t)
	defer closeClient(c)
	sub, err := c.Subscribe(t.Context(), devNamespace, "kept", client.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), devNamespace, "kept", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if e, err := sub.Next(t.Context()); err != nil || string(e.Payload) != "hello" {
		t.Fatalf("received %q, %v", e.Payload, err)
	}
	if list := polled(t, c, "kept", 1); string(list[0].Payload) != "hello" {
		t.Errorf("polled %q", list[0].Payload)
	}
	putOnce(t, c, "users", "alice", "42")
	holds(t, c, "users", "alice", "42")
	if _, page := r.get(t, r.dev.HTTP+"/metrics"); !strings.Contains(page, "\nfelix_client_connections 1\n") {
		t.Errorf("not one connection:\n%s", page)
	}
}

// polled is what a group gets that asks for so many records, at once.
func polled(t *testing.T, c *client.Client, stream string, n int) []client.Message {
	t.Helper()
	list, err := c.GroupPoll(t.Context(), devNamespace, stream, 0, "workers", client.GroupPollOptions{Max: n})
	if err != nil || len(list) != n {
		t.Fatalf("polled %d records, want %d: %v", len(list), n, err)
	}
	return list
}

// A queue is the log of its stream and a cursor: whatever way records are read, they have the offsets that they were published at. The cursor
// lies in a log of its own, which the tools know. Clients are told that there are groups. What the broker's part of the daemon keeps is logs, and
// nothing of the catalog.
//
// mission 244, mission 260 (with storage), mission 261, mission 311 (what of it is in one process)
func TestAQueueIsItsStreamsLogAndACursorInALogOfItsOwn(t *testing.T) {
	r := start(t, t.TempDir())
	r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	c := r.connect(t)
	for i, text := range []string{"a", "b", "c"} {
		if at, err := c.Publish(t.Context(), devNamespace, "kept", []byte(text)); err != nil || int(at.Offset) != i || !at.HasOffset {
			t.Fatalf("published at %+v, %v", at, err)
		}
	}
	for i, m := range polled(t, c, "kept", 3) {
		if int(m.Offset) != i || string(m.Payload) != string(rune('a'+i)) {
			t.Errorf("polled %q at %d as number %d", m.Payload, m.Offset, i)
		}
		if err := c.GroupAck(t.Context(), devNamespace, "kept", 0, "workers", m.Offset); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	for record, err := range c.ReadRange(t.Context(), devNamespace, "kept", client.ReadOptions{}) {
		if err != nil || int(record.Offset) != i || string(record.Payload) != string(rune('a'+i)) {
			t.Fatalf("read %q at %d as number %d, %v", record.Payload, record.Offset, i, err)
		}
		i++
	}
	if i != 3 {
		t.Errorf("%d records are read", i)
	}
	if got := r.offered(t).ServerFeatures.V & groupFeatures; got != groupFeatures {
		t.Errorf("of groups %x is advertised, want %x", got, groupFeatures)
	}
	stopped(t, r, c)
	onlyLogs(t, filepath.Join(r.dir, logFolder))
	if found, err := filepath.Glob(filepath.Join(r.dir, logFolder, "groups", "*_kept_*", "*.log")); err != nil || len(found) == 0 {
		t.Errorf("the cursor has the files %q, %v", found, err)
	}
	if code, text := tool("inspect", r.dir); code != exitOK || !strings.Contains(text, "groups/") || !strings.Contains(text, ", groups, incarnation ") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}

// onlyLogs fails the test if there is anything in a storage directory but the files of logs.
func onlyLogs(t *testing.T, dir string) {
	t.Helper()
	ofLogs := regexp.MustCompile(`^(LOCK|log\.meta|replica|durable\.mark|\d{20}\.(log|index)|[a-z]+\.snap)$`)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !ofLogs.MatchString(d.Name()) {
			t.Errorf("%s is no file of a log", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
