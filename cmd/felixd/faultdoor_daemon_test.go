package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// faultActors asks a door for everything of a kind.
func faultActors(t *testing.T, k *knock, kind string) (paths []string) {
	t.Helper()
	var page faultPage
	if err := json.Unmarshal([]byte(k.ask(`{"do":"ls"}`)), &page); err != nil {
		t.Fatal(err)
	}
	for _, a := range page.Actors {
		if a.Kind == kind {
			paths = append(paths, a.Actor)
		}
	}
	return paths
}

func TestThereIsNoFaultDoorUnlessItIsAskedFor(t *testing.T) {
	r := start(t, scratch(t).path+"/d")
	if _, err := os.Lstat(filepath.Join(r.dir, faultSocket)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("fault.sock is there: %v", err)
	}
	if code := r.stop(t); code != exitOK || strings.Contains(r.out.String()+r.err.String(), "FAULT DOOR") {
		t.Errorf("exit code %d", code)
	}
}

// Twice a crashed shard comes back, the third time within a minute it is quarantined; the node stays up.
func TestTheDaemonSurvivesWhatComesThroughItsFaultDoor(t *testing.T) {
	r := start(t, scratch(t).path+"/d", "--fault-door")
	if !strings.Contains(r.err.String(), "THE FAULT DOOR IS OPEN") || !strings.Contains(r.out.String(), "FAULT DOOR") {
		t.Errorf("the open door is not told:\n%s%s", r.out, r.err)
	}
	k, c := knockAt(t, r.dir), r.connect(t)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	for _, becomes := range []string{"shard_restarted", "shard_restarted", "shard_quarantined"} {
		if _, err := c.Publish(t.Context(), "default", "orders", []byte("x")); err != nil {
			t.Fatalf("before the shards became %s: %v", becomes, err)
		}
		shards := faultActors(t, k, "shard")
		for deadline := time.Now().Add(patience); len(shards) < 3; shards = faultActors(t, k, "shard") {
			if time.Now().After(deadline) { // one whose files are being closed comes back when they are
				t.Fatalf("the shards are %v", shards)
			}
		}
		for _, path := range shards {
			done := fmt.Sprintf(`{"do":"crash","actor":%q}`, path)
			if got := k.ask(done); got != done {
				t.Fatal(got)
			}
		}
		for _, path := range shards {
			r.err.wait(t, "msg="+becomes+" shard="+strings.TrimPrefix(path, "shards/")+" ")
		}
	}
	if left := faultActors(t, k, "shard"); len(left) != 0 {
		t.Errorf("quarantined, and there are %v", left)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := c.Publish(ctx, "default", "orders", []byte("x")); err == nil {
		t.Error("a quarantined shard took a publish")
	}
	if code, _ := r.get(t, r.dev.HTTP+"/ready"); code != http.StatusOK {
		t.Errorf("/ready says %d", code)
	}
	_, metrics := r.get(t, r.dev.HTTP+"/metrics")
	for _, want := range []string{`felixd_events_total{event="fault_injected"} 9`, `felixd_actor_panics_total{kind="shard"} 9`, "felix_shards_quarantined 3"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if code := r.stop(t); code != exitOK {
		t.Errorf("exit code %d; it printed\n%s%s", code, r.out, r.err)
	}
}

// A drain waits for the shards; ten minutes if nobody healed them.
func TestAPausedActorDoesNotDelayTheShutdown(t *testing.T) {
	t.Parallel()
	r := start(t, scratch(t).path+"/d", "--fault-door")
	k := knockAt(t, r.dir)
	paused := append(faultActors(t, k, "shard"), "shards", "sessions")
	for _, path := range paused {
		if got := k.ask(fmt.Sprintf(`{"do":"pause","actor":%q,"ms":600000}`, path)); strings.Contains(got, "error") {
			t.Fatal(got)
		}
	}
	if code := r.stop(t); code != exitOK { // it is waited for by far less long
		t.Fatalf("exit code %d; it printed\n%s%s", code, r.out, r.err)
	}
	if want := fmt.Sprintf("actors=%d", len(paused)); !strings.Contains(r.err.String(), want) {
		t.Errorf("not told that all were healed (%s):\n%s", want, r.err)
	}
	if _, err := os.Lstat(filepath.Join(r.dir, faultSocket)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// decision 24: the Host failing drains the node and exits non-zero.
func TestACrashOfTheHostEndsTheDaemon(t *testing.T) {
	t.Parallel()
	r := start(t, scratch(t).path+"/d", "--fault-door")
	knockAt(t, r.dir).ask(`{"do":"crash","actor":"shards"}`)
	if code := r.wait(t); code != exitFailure || !strings.Contains(r.err.String(), "actor shards ended: panic during turn: crash injected") {
		t.Errorf("exit code %d; it printed\n%s%s", code, r.out, r.err)
	}
}

func TestADoorThatCannotBeOpenedIsExitCode4AndNamesTheFlag(t *testing.T) {
	data := scratch(t)
	dir := filepath.Join(data.path, "d")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, faultSocket), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	code := run([]string{"dev", "--data-dir", dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--api", "127.0.0.1:0", "--fault-door"}, nil, io.Discard, &stderr, nil)
	if code != exitDataDir || !strings.Contains(stderr.String(), "--fault-door") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}
