package main

import (
	"testing"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

func TestAValueIsWrittenOnlyIfItsConditionHolds(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "")
	wantText(t, c.run(exitOK, "cache", "put", "c", "k", "one", "--if-absent"), `{"bytes":3,"cache":"c","key":"k","namespace":"default","version":0}`+"\n")
	c.run(exitRefused, "cache", "put", "c", "k", "two", "--if-absent")
	wantContains(t, c.stderr.String(), `key "k" in cache default/c has version 0: nothing was done`)
	c.run(exitRefused, "cache", "put", "c", "k", "two", "--if-version", "7")
	wantContains(t, c.stderr.String(), `key "k" in cache default/c has version 0, not version 7: nothing was done`)
	c.run(exitRefused, "cache", "put", "c", "nobody", "two", "--if-version", "7")
	wantContains(t, c.stderr.String(), `key "nobody" in cache default/c has no value, not version 7: nothing was done`)
	wantText(t, c.run(exitOK, "cache", "get", "c", "k"), "one")
	wantText(t, c.onTerminal().run(exitOK, "cache", "put", "c", "k", "two", "--if-version", "0"), "wrote 3 bytes to key \"k\" in cache default/c, version 1\n")
	c.run(exitUsage, "cache", "put", "c", "k", "v", "--if-absent", "--if-version", "1")
	c.run(exitUsage, "cache", "put", "c", "k", "v", "--if-version", "-1")
	c.run(exitUsage, "cache", "put", "c", "k", "v", "--if-absent", "--ttl", "-1s")
}

func TestGetTellsTheVersionWhenItIsAskedTo(t *testing.T) {
	b := newBroker(t)
	b.CachePut("default/c", 0, "k", "old")
	b.CachePut("default/c", 0, "k", "new\n")
	c := newCLI(t).at(b, "")
	wantText(t, c.run(exitOK, "cache", "get", "c", "k", "--version"), `{"namespace":"default","cache":"c","key":"k","value":"new\n","version":1}`+"\n")
	wantText(t, c.run(exitOK, "cache", "get", "c", "k", "--json"), `{"namespace":"default","cache":"c","key":"k","value":"new\n"}`+"\n")
	c.run(exitNotFound, "cache", "get", "c", "nobody", "--version")
	wantText(t, c.onTerminal().run(exitOK, "cache", "get", "c", "k", "--version"), "new\\n\nversion 1\n")
}

func TestAKeyIsRemovedOnlyIfItHasTheVersion(t *testing.T) {
	b := newBroker(t)
	b.CachePut("default/c", 0, "k", "v")
	c := newCLI(t).at(b, "")
	c.run(exitRefused, "cache", "rm", "c", "k", "--if-version", "1")
	wantContains(t, c.stderr.String(), "has version 0, not version 1")
	wantContains(t, c.run(exitOK, "cache", "rm", "c", "k", "--if-version", "0"), `"status":"removed"`)
	c.run(exitNotFound, "cache", "rm", "c", "k", "--if-version", "0")
	c.run(exitUsage, "cache", "rm", "c", "--if-version", "0")
	wantContains(t, c.stderr.String(), "--if-version is for a KEY")
}

func TestBrokersWithoutConditionsAreNotAskedTo(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"default/c": 1}, Features: testbroker.DefaultFeatures &^ wire.FeatureCacheConditional})
	c := newCLI(t).at(b, "")
	c.run(exitRefused, "cache", "put", "c", "k", "v", "--if-absent")
	c.run(exitRefused, "cache", "get", "c", "k", "--version")
	c.run(exitRefused, "counter", "add", "c", "k")
	c.run(exitRefused, "cache", "watch", "c")
	c.run(exitNotFound, "cache", "get", "c", "k")
}

func TestCounterIsAddedToAndRead(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "")
	c.run(exitNotFound, "counter", "get", "c", "visits")
	wantContains(t, c.stderr.String(), `counter "visits" of cache default/c does not exist`)
	wantText(t, c.run(exitOK, "counter", "add", "c", "visits"), "1\n")
	wantText(t, c.run(exitOK, "counter", "add", "c", "visits", "41"), "42\n")
	wantText(t, c.run(exitOK, "counter", "add", "c", "visits", "--", "-50"), "-8\n")
	wantText(t, c.run(exitOK, "counter", "get", "c", "visits"), "-8\n")
	wantText(t, c.run(exitOK, "counter", "get", "c", "visits", "--json"), `{"namespace":"default","cache":"c","key":"visits","sum":-8}`+"\n")
	c.run(exitNotFound, "cache", "get", "c", "visits") // counters have keys of their own
	c.run(exitRefused, "counter", "add", "c", "visits", "--", "-9223372036854775808")
	wantContains(t, c.stderr.String(), "64 bits")
	c.run(exitNotFound, "counter", "add", "nosuch", "visits")
	c.run(exitUsage, "counter", "add", "c", "visits", "1.5")
	c.run(exitUsage, "counter", "add", "c", "visits", "-50")
	wantContains(t, c.stderr.String(), "a DELTA below 0 goes behind --")
	c.run(exitUsage, "counter", "add", "c", "visits", "--nonsense")
	c.run(exitUsage, "counter")
}

func TestCachesInMemoryAreCreatedAndShownAsSuch(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, newControlPlane(t, b).URL)
	wantContains(t, c.run(exitOK, "cache", "create", "m", "--in-memory"), `"in_memory":true`)
	c.run(exitOK, "cache", "create", "d")
	c.onTerminal()
	wantFacts(t, c.run(exitOK, "cache", "info", "m"), "kept", "in memory: evicts, no watches, no counters")
	wantFacts(t, c.run(exitOK, "cache", "info", "d"), "kept", "in a log (in memory on a broker without storage)")
	wantContains(t, c.run(exitOK, "cache", "ls"), "KEPT", "in memory", "in a log")
}
