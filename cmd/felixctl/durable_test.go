package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// lines are the payloads of records that were printed with --json, and checks what else there is to know of each.
func jsonLines(t *testing.T, text string) (payloads []string, offsets []int, times []time.Time) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e eventLine
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Payload == nil || e.Offset == nil {
			t.Fatalf("%s: %v", line, err)
		}
		at, err := time.Parse(time.RFC3339Nano, e.Timestamp)
		if err != nil {
			t.Fatal(err)
		}
		payloads, offsets, times = append(payloads, *e.Payload), append(offsets, int(*e.Offset)), append(times, at)
	}
	return payloads, offsets, times
}

// hourly is a broker whose stream has 10 records, one a minute, the last a minute ago.
func hourly(t *testing.T) (*testbroker.Broker, time.Time) {
	b := newBroker(t)
	began := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	for i := range 10 {
		b.AppendAt("default/orders", 0, testbroker.Region(fmt.Sprint(i)), began.Add(time.Duration(i)*time.Minute))
	}
	return b, began
}

func TestSubAndReadBeginAtOffsetsWordsAndTimes(t *testing.T) {
	b, began := hourly(t)
	c := newCLI(t).at(b, "")
	for from, first := range map[string]int{
		"earliest": 0, "0": 0, "7": 7, "-1h": 0, "-150s": 8,
		"time:" + began.Add(4*time.Minute).Format(time.RFC3339): 4, "time:" + began.Add(4*time.Minute+time.Millisecond).Format(time.RFC3339Nano): 5,
	} {
		want := ""
		for i := first; i < 10; i++ {
			want += fmt.Sprintln(i)
		}
		wantText(t, c.run(exitOK, "sub", "orders", "--from", from, "--count", fmt.Sprint(10-first)), want)
		wantText(t, c.run(exitOK, "read", "orders", "--from", from), want)
	}
	wantText(t, c.run(exitOK, "read", "orders", "--from", "3", "--end", "6"), "3\n4\n5\n")
	wantText(t, c.run(exitOK, "read", "orders", "--from", "3", "--count", "1"), "3\n")
	wantText(t, c.run(exitOK, "read", "orders", "--from", "10"), "")
	wantText(t, c.run(exitOK, "read", "orders", "--from", "time:2100-01-01T00:00:00Z"), "")
	for _, wrong := range []string{"time:yesterday", "-soon", "-", "time:", "1.5", "latest "} {
		c.run(exitUsage, "sub", "orders", "--from", wrong)
	}
	c.run(exitUsage, "read", "orders", "--from", "latest")
	c.run(exitUsage, "read", "orders", "--count", "-1")
}

func TestRecordsInJSONHaveOffsetAndTimestamp(t *testing.T) {
	b, began := hourly(t)
	c := newCLI(t).at(b, "")
	for _, args := range [][]string{
		{"sub", "orders", "--from", "9", "--count", "1", "--json"}, {"read", "orders", "--from", "9", "--json"},
	} {
		payloads, offsets, times := jsonLines(t, c.run(exitOK, args...))
		if len(payloads) != 1 || payloads[0] != "9" || offsets[0] != 9 || !times[0].Equal(began.Add(9*time.Minute)) {
			t.Errorf("%v: %v at %v, %v", args, payloads, offsets, times)
		}
	}
}

func TestReadShowsWhatRetentionLeftAndRefusesWhatIsGone(t *testing.T) {
	b, _ := hourly(t)
	b.Trim("default/orders", 0, 6)
	c := newCLI(t).at(b, "")
	wantText(t, c.run(exitOK, "read", "orders"), "6\n7\n8\n9\n")
	for _, command := range []string{"read", "sub"} {
		c.run(exitRefused, command, "orders", "--from", "5")
		wantContains(t, c.stderr.String(), "offset 5 is gone, the oldest record kept is 6")
		c.run(exitRefused, command, "orders", "--from", "11")
		wantContains(t, c.stderr.String(), "offset 11 is past the end, which is at 10")
	}
	c.run(exitNotFound, "read", "nosuch")
}

func TestReadPrintsMoreThanAPage(t *testing.T) {
	b := newBroker(t)
	want := ""
	for i := range 2500 {
		b.Append("default/wide", 2, testbroker.Region(fmt.Sprint(i)))
		want += fmt.Sprintln(i)
	}
	wantText(t, newCLI(t).at(b, "").run(exitOK, "read", "wide", "--shard", "2"), want)
}

func TestPubIdempotentWritesEachRecordOnceOverLostAnswers(t *testing.T) {
	var lost atomic.Int64
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"default/orders": 1}, Durable: true,
		OnAppended: func(s *testbroker.Stream, p *wire.Publish) bool {
			if p.Sequence != 3 || lost.Add(1) > 1 {
				return false
			}
			transport.Close(s.Conn, transport.CloseOverload)
			return true
		}})
	c := newCLI(t).at(b, "")
	out := c.input("a\nb\nc\nd\ne\n").run(exitOK, "pub", "orders", "--idempotent", "--json")
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		wantContains(t, line, fmt.Sprintf(`"offset":%d}`, i))
	}
	if got := strings.Join(b.Payloads("default/orders", 0), ""); got != "abcde" || lost.Load() < 2 {
		t.Fatalf("%s in the log, %d tries of the fourth", got, lost.Load())
	}
	wantText(t, c.onTerminal().run(exitOK, "pub", "orders", "f", "--idempotent", "--key", "k"), "published 1 record to default/orders, offset 5\n")
	c.run(exitUsage, "pub", "orders", "f", "--idempotent", "--ack", "none")
}

func TestPubIfOffsetWritesAllRecordsOrNone(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	wantContains(t, c.input("a\nb\n").run(exitOK, "pub", "orders", "--if-offset", "0"), `"records":2,"first_offset":0,"last_offset":1`)
	c.run(exitRefused, "pub", "orders", "c", "--if-offset", "1")
	wantContains(t, c.stderr.String(), "expected offset 1, but the next one is 2")
	wantContains(t, c.run(exitOK, "pub", "orders", "c", "--if-offset", "2"), `"first_offset":2`)
	if got := strings.Join(b.Payloads("default/orders", 0), ""); got != "abc" {
		t.Fatalf("%s in the log", got)
	}
	for _, wrong := range [][]string{{"--batch", "2"}, {"--idempotent"}, {"--ack", "none"}} {
		c.run(exitUsage, append([]string{"pub", "orders", "c", "--if-offset", "2"}, wrong...)...)
	}
}

func TestCommitWritesAnEventAndStateGetReadsWhatItPut(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	c.run(exitNotFound, "state", "get", "orders", "balance", "--entity", "alice")
	wantText(t, c.run(exitOK, "commit", "orders", "--entity", "alice", "--event", "opened", "--put", "balance=1=0", "--put", "owner="),
		`{"entity":"alice","namespace":"default","offset":0,"stream":"orders"}`+"\n")
	wantText(t, c.run(exitOK, "state", "get", "orders", "balance", "--entity", "alice"), "1=0")
	wantText(t, c.run(exitOK, "state", "get", "orders", "owner", "--entity", "alice", "--json"),
		`{"namespace":"default","stream":"orders","entity":"alice","key":"owner","value":"","version":0,"as_of":0}`+"\n")
	c.run(exitRefused, "commit", "orders", "--entity", "alice", "--event", "closed", "--delete", "balance", "--if-offset", "0")
	wantContains(t, c.stderr.String(), "the next one is 1")
	c.onTerminal()
	wantText(t, c.run(exitOK, "commit", "orders", "--entity", "alice", "--event", "closed", "--delete", "balance", "--if-offset", "1"),
		"committed to default/orders at offset 1\n")
	c.run(exitNotFound, "state", "get", "orders", "balance", "--entity", "alice")
	wantText(t, c.run(exitOK, "read", "orders"), "opened\nclosed\n")
	for _, wrong := range [][]string{
		{"commit", "orders", "--event", "x"}, {"commit", "orders", "--entity", "x"}, {"commit", "orders", "--entity", "x", "--event", "x", "--put", "novalue"},
		{"state", "get", "orders", "k"}, {"state"},
	} {
		c.run(exitUsage, wrong...)
	}
}

func TestStreamOffsetsShowWhatEachShardHolds(t *testing.T) {
	b := newBroker(t)
	b.Append("default/wide", 1, testbroker.Region("a", "b", "c"))
	b.Trim("default/wide", 1, 2)
	c := newCLI(t).at(b, "")
	wantText(t, c.run(exitOK, "stream", "offsets", "wide"), `{"namespace":"default","stream":"wide","shards":[{"shard":0,"oldest":0,"tail":0},`+
		`{"shard":1,"oldest":2,"tail":3},{"shard":2,"oldest":0,"tail":0},{"shard":3,"oldest":0,"tail":0}]}`+"\n")
	wantText(t, c.onTerminal().run(exitOK, "stream", "offsets", "orders"), "SHARD  OLDEST  TAIL\n0      0       0\n")
}

func TestInMemoryStreamsRefuseWhatNeedsALog(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"default/orders": 1}, Features: testbroker.DefaultFeatures | testbroker.DurableFeatures})
	c := newCLI(t).at(b, "")
	for _, args := range [][]string{
		{"read", "orders"}, {"stream", "offsets", "orders"}, {"sub", "orders", "--from", "3"}, {"sub", "orders", "--from", "-5m"}, {"pub", "orders", "x", "--idempotent"},
		{"pub", "orders", "x", "--if-offset", "0"}, {"commit", "orders", "--entity", "e", "--event", "x"}, {"state", "get", "orders", "k", "--entity", "e"},
	} {
		c.run(exitRefused, args...)
	}
}

func TestDurableStreamIsCreatedWithItsRetentionAndShown(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, newControlPlane(t, b).URL)
	wantContains(t, c.run(exitOK, "stream", "create", "d", "--durable", "--retention-age", "48h", "--retention-bytes", "1GiB", "--compress"),
		`"durable":true`, `"max_age_seconds":172800`, `"max_size_bytes":1073741824`, `"compress":true`)
	c.onTerminal()
	wantFacts(t, c.run(exitOK, "stream", "info", "d"), "durable", "yes", "kept for", "2 days", "kept per shard", "1 GiB", "compressed", "yes", "fsync", "on_commit")
	c.run(exitOK, "stream", "create", "odd", "--retention-age", "90s", "--retention-bytes", "1000")
	wantFacts(t, c.run(exitOK, "stream", "info", "odd"), "durable", "no", "kept for", "1m30s", "kept per shard", "1000 bytes", "compressed", "no")
	for _, wrong := range [][]string{
		{"--retention-age", "1500ms"}, {"--retention-age", "-1h"}, {"--retention-bytes", "much"}, {"--retention-bytes", "9000000TiB"},
		{"--retention-bytes", "-1"}, {"--retention-age", "1h", "--retention-secs", "3600"},
	} {
		c.run(exitUsage, append([]string{"stream", "create", "w"}, wrong...)...)
	}
}

// wantFacts checks the lines of an info, name and value in turn.
func wantFacts(t *testing.T, text string, facts ...string) {
	t.Helper()
	for i := 0; i < len(facts); i += 2 {
		found := false
		for line := range strings.Lines(text) {
			value, ok := strings.CutPrefix(line, facts[i])
			found = found || ok && strings.TrimSpace(value) == facts[i+1]
		}
		if !found {
			t.Errorf("%q is not %q in\n%s", facts[i], facts[i+1], text)
		}
	}
}
