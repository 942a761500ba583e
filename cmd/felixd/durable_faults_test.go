package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
)

// faulty is a daemon with a durable stream "kept" and a fault file, empty to begin with.
func faulty(t *testing.T, more ...string) (r *running, set func(text string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "faults")
	set = func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	set("")
	r = start(t, t.TempDir(), append([]string{"--storage-fault-file", file}, more...)...)
	r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	publishOnce(t, r, "kept", "before")
	return r, set
}

// untilPublish publishes until the outcome is the one that is waited for, and returns the last one.
func untilPublish(t *testing.T, c *client.Client, stream, payload string, ok func(error) bool) error {
	t.Helper()
	for deadline := time.Now().Add(patience); ; pause(t.Context(), 5*time.Millisecond) {
		_, err := c.Publish(t.Context(), devNamespace, stream, []byte(payload))
		if ok(err) {
			return err
		}
		if time.Now().After(deadline) {
			t.Fatalf("the last outcome is %v", err)
		}
	}
}

func failed(err error) bool    { return err != nil }
func succeeded(err error) bool { return err == nil }

// records reads a stream from its beginning, as many as there are.
func records(t *testing.T, c *client.Client, stream string, n int) (out []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sub, err := c.Subscribe(ctx, devNamespace, stream, client.SubscribeOptions{From: client.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for range n {
		e, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("after %q: %v", out, err)
		}
		out = append(out, string(e.Payload))
	}
	return out
}

func TestAFullDiskRefusesPublishesAndServesAgainWithoutARestart(t *testing.T) {
	r, set := faulty(t)
	defer r.stop(t)
	c := r.connect(t)
	defer closeClient(c)
	set("write name=*.log error=ENOSPC\n")
	err := untilPublish(t, c, "kept", "lost", failed)
	var refused *client.BrokerError
	if !errors.As(err, &refused) {
		t.Errorf("a full disk is told as %T %v", err, err)
	}
	if !strings.Contains(err.Error(), "no space left") {
		t.Errorf("it does not say why: %v", err)
	}
	publishOnce(t, r, devStreams[0], "elsewhere")
	if got := records(t, c, "kept", 1); got[0] != "before" {
		t.Errorf("read %q", got)
	}
	set("")
	untilPublish(t, c, "kept", "after", succeeded)
}

// field case DUR-15
func TestASyncThatFailsEndsItsShardUntilARestartAndNoOther(t *testing.T) {
	r, set := faulty(t)
	r.must(t, "POST", devStreamsPath, `{"stream":"other","durable":true}`)
	publishOnce(t, r, "other", "before")
	c := r.connect(t)
	set("sync name=*_kept_*/*.log error=EIO\n")
	untilPublish(t, c, "kept", "unknown", failed)
	set("")
	for range 3 { // a success of a later sync proves nothing, and is not tried
		if _, err := c.Publish(t.Context(), devNamespace, "kept", []byte("x")); err == nil {
			t.Error("acknowledged after a sync that failed")
		}
	}
	untilPublish(t, c, "other", "after", succeeded)
	closeClient(c)
	r.stop(t)

	again := start(t, r.dir)
	defer again.stop(t)
	c = again.connect(t)
	defer closeClient(c)
	untilPublish(t, c, "kept", "after", succeeded)
	if got := records(t, c, "kept", 1); got[0] != "before" {
		t.Errorf("what was acknowledged is %q", got)
	}
}

func TestAStreamThatIsMadeAgainBeginsEmptyAlsoAfterARestart(t *testing.T) {
	r := start(t, t.TempDir())
	for life := range 3 {
		r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
		want := fmt.Sprint("life ", life)
		publishOnce(t, r, "kept", want)
		c := r.connect(t)
		if got := records(t, c, "kept", 1); got[0] != want {
			t.Fatalf("life %d begins with %q", life, got)
		}
		closeClient(c)
		if life == 1 {
			r.stop(t)
			r = start(t, r.dir)
			c := r.connect(t)
			if got := records(t, c, "kept", 1); got[0] != want {
				t.Fatalf("after a restart life %d begins with %q", life, got)
			}
			closeClient(c)
		}
		if life < 2 {
			r.must(t, "DELETE", devStreamsPath+"/kept", "")
		}
	}
	if code := r.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, r.err)
	}
}
