package main

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/felixd/felixd/controlplane/store/catalogfile"
)

// Whoever uses what is there notices nothing of a control plane that can't do anything; a request for something new is refused by type.
//
// mission 321
func TestOnlyWhatIsNewNeedsTheCatalog(t *testing.T) {
	r := start(t, t.TempDir())
	r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	c := r.connect(t)
	catalog := filepath.Join(r.dir, catalogfile.Name)
	aside := catalog + ".aside"
	for { // until nothing can be put in its place; the catalog is written now and then, to keep which logs there are
		if err := os.Rename(catalog, aside); err != nil {
			t.Fatal(err)
		}
		err := os.Mkdir(catalog, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	if code, text := r.api(t, "POST", devStreamsPath, `{"stream":"new"}`); code != http.StatusServiceUnavailable || !strings.Contains(text, "unavailable") {
		t.Errorf("create: %d %s", code, text)
	}
	if _, err := c.Publish(t.Context(), devNamespace, "kept", []byte("hello")); err != nil {
		t.Error(err)
	}
	putOnce(t, c, "users", "alice", "42")
	holds(t, c, "users", "alice", "42")
	if m := polled(t, c, "kept", 1)[0]; string(m.Payload) != "hello" {
		t.Errorf("polled %q", m.Payload)
	} else if err := c.GroupAck(t.Context(), devNamespace, "kept", 0, "workers", m.Offset); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(catalog); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, catalog); err != nil {
		t.Fatal(err)
	}
	stopped(t, r, c)
}
