package main

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/felixd/felixd/client"
)

// felixdOf builds felixd and starts it with data in the folder of a felixctl. stop ends it.
func felixdOf(t *testing.T, c *cli) (start func() (stop func())) {
	t.Helper()
	patientDisk(t)
	program, err := buildFelixd()
	if err != nil {
		t.Fatal(err)
	}
	return func() func() {
		own := &ownFelixd{ended: make(chan struct{})}
		b := &benchCommands{app: &app{sys: c.sys}}
		if err := b.launch(program, filepath.Join(c.sys.workDir, "felix-data"), fsyncOnCommit, own); err != nil {
			t.Fatal(err)
		}
		stop := sync.OnceFunc(func() {
			if err := own.stop(); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(stop) // also of a test that ends in the middle
		return stop
	}
}

func TestCachesOfAFelixdAreConditionalWatchedCountedAndSurviveItsRestart(t *testing.T) {
	c := newCLI(t)
	start := felixdOf(t, c)
	stop := start()
	c.run(exitOK, "cache", "create", "logged", "--shards", "2")
	c.run(exitOK, "cache", "create", "memory", "--in-memory")
	wantContains(t, c.run(exitOK, "cache", "info", "memory"), `"in_memory":true`)

	for _, cache := range []string{"logged", "memory"} {
		c.untilServed(cache)
		version := writtenVersion(t, c.run(exitOK, "cache", "put", cache, "k", "one", "--if-absent"))
		c.run(exitRefused, "cache", "put", cache, "k", "two", "--if-absent")
		wantContains(t, c.run(exitOK, "cache", "get", cache, "k", "--version"), `"value":"one","version":`+version+"}")
		second := writtenVersion(t, c.run(exitOK, "cache", "put", cache, "k", "two", "--if-version", version))
		c.run(exitRefused, "cache", "rm", cache, "k", "--if-version", version)
		c.run(exitOK, "cache", "rm", cache, "k", "--if-version", second)
		c.run(exitOK, "cache", "put", cache, "stays", "here", "--ttl", "1h")
	}
	wantText(t, c.run(exitOK, "counter", "add", "logged", "visits", "42"), "42\n")
	c.run(exitRefused, "counter", "add", "memory", "visits")
	c.run(exitRefused, "cache", "watch", "memory")
	wantContains(t, c.run(exitOK, "cache", "watch", "logged", "--key", "k", "--from", "0", "--count", "3"), `"event":"put","key":"k","value":"one"`, `"value":"two"`, `"event":"delete"`)
	wantContains(t, c.run(exitOK, "cache", "watch", "logged", "--retained", "--count", "1"), `"event":"snapshot","count":1}`, `"event":"current","key":"stays"`)
	wantContains(t, c.run(exitOK, "cache", "watch", "logged", "--key", "stays", "--retained", "--count", "1"), `"event":"snapshot","count":1}`)
	stop()

	defer start()()
	c.untilServed("logged")
	wantText(t, c.run(exitOK, "cache", "get", "logged", "stays"), "here")
	c.untilServed("memory")
	c.run(exitNotFound, "cache", "get", "memory", "stays")
	wantText(t, c.run(exitOK, "counter", "get", "logged", "visits"), "42\n")
	wantContains(t, c.run(exitOK, "cache", "watch", "logged", "--retained", "--key", "stays", "--count", "1"), `"event":"snapshot","count":1}`, `"event":"current","key":"stays","value":"here"`, `"expires_at"`)
}

// untilServed returns when the broker knows a cache and has opened it.
func (c *cli) untilServed(cache string) {
	c.t.Helper()
	b := &benchCommands{app: &app{sys: c.sys}}
	f, err := b.runningBroker(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	err = awaitServed(c.t.Context(), f, func(ctx context.Context, client *client.Client, namespace string) error {
		for _, key := range []string{"k", "stays"} { // of two shards, maybe
			if _, _, err := client.CacheGet(ctx, namespace, cache, key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// writtenVersion is the version in an object.
func writtenVersion(t *testing.T, text string) string {
	t.Helper()
	_, version, ok := strings.Cut(strings.TrimSpace(text), `"version":`)
	if !ok {
		t.Fatalf("%s has no version", text)
	}
	return strings.TrimSuffix(version, "}")
}
