package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

func TestPubAndSubCarryBytesUnchangedThroughPipes(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	c.input("one\r\n\ntwo \xff\x00\nlast without feed").run(exitOK, "pub", "orders")
	wantText(t, c.run(exitOK, "sub", "orders", "--from", "earliest", "--count", "4"), "one\r\n\ntwo \xff\x00\nlast without feed\n")
}

func TestPubPrintsOneObjectPerRecordAsItIsAcknowledged(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	in, lines := io.Pipe()
	c.sys.stdin = in
	_, wait := c.start("pub", "orders", "--json", "--key", "k")
	for i := range 3 { // the next line is written only when the one before is acknowledged
		if _, err := fmt.Fprintf(lines, "%d\n", i); err != nil {
			t.Fatal(err)
		}
		c.stdout.await(t, fmt.Sprintf(`{"namespace":"default","stream":"orders","record":%d,"key":"k","offset":%d}`+"\n", i, i))
	}
	if err := lines.Close(); err != nil {
		t.Fatal(err)
	}
	if code := wait(); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
}

func TestPubBatchesAndNumbersRecordsByTheirOffsets(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	out := c.input("a\nb\nc\nd\ne\n").run(exitOK, "pub", "orders", "--batch", "2", "--json")
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var r receipt
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Record != int64(i) || r.Offset == nil || *r.Offset != uint64(i) {
			t.Fatalf("line %d: %s, %v", i, line, err)
		}
	}
	wantText(t, c.input("x\ny\n").run(exitOK, "pub", "orders"),
		`{"namespace":"default","stream":"orders","records":2,"first_offset":5,"last_offset":6}`+"\n")
	wantText(t, c.onTerminal().run(exitOK, "pub", "orders", "z"), "published 1 record to default/orders, offset 7\n")
	wantText(t, c.run(exitOK, "pub", "orders", "z", "--ack", "none"), "sent 1 record to default/orders\n")
}

func TestPubTakesAFileWholeOrByLines(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantContains(t, c.run(exitOK, "pub", "orders", "--file", path), `"records":1`)
	wantContains(t, c.run(exitOK, "pub", "orders", "--file", path, "--lines"), `"records":2`)
	wantContains(t, c.input("1\n2\n").run(exitOK, "pub", "orders", "-", "--whole"), `"records":1`)
	wantText(t, c.run(exitOK, "sub", "orders", "--from", "earliest", "--count", "4"), "1\n2\n\n1\n2\n1\n2\n\n")
}

func TestPubStopsAtTheFirstRefusalAndSaysHowManyWereTaken(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"default/orders": 1}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		p, ok := f.Publish()
		if payload, _, _ := p.Region.Next(); !ok || string(payload) != "bad" {
			return false
		}
		r := wire.Refuse(wire.CodeOverloaded, "no room")
		s.Ack(wire.PublishAck{RequestID: p.RequestID, Refusal: &r})
		return true
	}})
	c := newCLI(t).at(b, "")
	in, lines := io.Pipe()
	c.sys.stdin = in
	go func() {
		_, _ = io.WriteString(lines, "good\nbad\n") // and then it stays open: the command must not wait for more
	}()
	c.run(exitRefused, "pub", "orders", "--json")
	wantContains(t, c.stderr.String(), `"exit":4`, "overloaded", "1 record acknowledged before")
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSubEndsCleanlyWhenInterrupted(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	stop, _ := c.start("sub", "wide")
	c.stderr.await(t, "subscribed to default/wide (4 shards)")
	p := newCLI(t).at(b, "")
	for i := range 8 {
		p.run(exitOK, "pub", "wide", fmt.Sprintf("message %d", i), "--key", fmt.Sprint(i))
	}
	for i := range 8 {
		c.stdout.await(t, fmt.Sprintf("message %d\n", i))
	}
	if code := stop(); code != exitOK {
		t.Fatalf("exit code %d, standard error %s", code, c.stderr)
	}
}

func TestSubShowsTextOrBase64InJSONAndEscapesOnATerminal(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	c.input("<é>\n\xff\x1b[2J\n").run(exitOK, "pub", "orders")
	printed := c.run(exitOK, "sub", "orders", "--from", "earliest", "--count", "2", "--json", "--shard", "0")
	wantText(t, regexp.MustCompile(`"timestamp":"[^"]+Z",`).ReplaceAllString(printed, ""),
		`{"namespace":"default","stream":"orders","shard":0,"offset":0,"payload":"<é>"}`+"\n"+
			`{"namespace":"default","stream":"orders","shard":0,"offset":1,"payload_base64":"/xtbMko="}`+"\n")
	wantText(t, c.onTerminal().run(exitOK, "sub", "orders", "--from", "0", "--count", "2"), "<é>\n\\xff\\x1b[2J\n")
}

func TestExitCodesTellWhatHappened(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	c.run(exitNotFound, "pub", "nosuch", "x")
	c.run(exitRefused, "sub", "orders", "--from", "99")
	c.run(exitRefused, "pub", "orders", "x", "--token", "bad")
	c.run(exitRefused, "sub", "orders", "--shard", "7")
	for _, wrong := range [][]string{
		{"pub"}, {"nosuch"}, {"stream"}, {"pub", "orders", "x", "--nosuch"}, {"pub", "orders", "x", "--ack", "maybe"},
		{"pub", "orders", "x", "--batch", "0"}, {"pub", "orders", "x", "--file", "y"}, {"pub", "orders", "--lines"},
		{"pub", "orders", "--file", filepath.Join(t.TempDir(), "none")}, {"sub", "orders", "--from", "yesterday"},
		{"sub", "orders", "--shard", "-1"}, {"sub", "orders", "--count", "-1"}, {"pub", "", "x"},
		{"pub", "orders", "x", "--context-file", "nosuch.json"}, {"pub", "orders", "x", "--token", "a", "--token-file", "b"},
	} {
		c.run(exitUsage, wrong...)
	}
	c.onTerminal().run(exitUsage, "pub", "orders")
}

func TestLostConnectionIsExitCode3(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	_, wait := c.start("sub", "orders", "--shard", "0")
	c.stderr.await(t, "subscribed to")
	b.Drop(transport.CloseShutdown)
	if code := wait(); code != exitUnreachable {
		t.Fatalf("exit code %d: %s", code, c.stderr)
	}
	wantContains(t, c.stderr.String(), "subscription lost")
}

func TestInterruptedPubSaysSoAfterItsLastAcknowledgement(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	in, lines := io.Pipe()
	c.sys.stdin = in
	stop, _ := c.start("pub", "orders", "--json")
	if _, err := io.WriteString(lines, "x\n"); err != nil {
		t.Fatal(err)
	}
	c.stdout.await(t, `"offset":0`)
	if code := stop(); code != exitOther {
		t.Fatalf("exit code %d: %s", code, c.stderr)
	}
	wantContains(t, c.stderr.String(), "interrupted", "1 record acknowledged before")
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNobodyThereIsExitCode3AndSaysWhatToDo(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	c.run(exitUnreachable, "pub", "orders", "x", "--ca-file", newBroker(t).CAFile(t)) // another authority: nobody we trust is there
	wantContains(t, c.stderr.String(), "check the CA file")
}

func TestMissingDevFileTellsHowToGetOne(t *testing.T) {
	c := newCLI(t)
	c.run(exitUsage, "pub", "orders", "x")
	wantContains(t, c.stderr.String(), "no felix-data/dev.json here", "go run ./cmd/felixd dev", "--context-file")
	c.run(exitUsage, "stream", "ls")
	c.run(exitUsage, "pub", "orders", "x", "--addr", "127.0.0.1:1", "--tenant", "t")
	wantContains(t, c.stderr.String(), "FELIX_AUTH_TOKEN")
}

func TestFlagsWinOverVariablesAndVariablesOverTheFile(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	env := map[string]string{envToken: "bad"}
	c.sys.getenv = func(name string) string { return env[name] }
	c.run(exitRefused, "pub", "orders", "x")
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(testbroker.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.run(exitOK, "pub", "orders", "x", "--token-file", tokenFile)
	delete(env, envToken)
	env[envTokenFile], env[envNamespace] = tokenFile, "other"
	c.run(exitNotFound, "pub", "orders", "x")
	c.run(exitOK, "pub", "orders", "x", "-n", "default", "--alpn")
	file := filepath.Join(c.sys.workDir, devFile)
	c.sys.workDir = t.TempDir()
	env[envContextFile], env[envNamespace] = file, ""
	c.run(exitOK, "pub", "orders", "x")
}

func TestServerNameFollowsTheFirstBroker(t *testing.T) {
	for addrs, want := range map[string]string{
		"": "localhost", "127.0.0.1:5000": "localhost", "[::1]:5000": "localhost", "broker.example:5000,10.0.0.1:1": "broker.example",
	} {
		if got := serverNameOf(splitList(addrs)); got != want {
			t.Errorf("%q: %q, want %q", addrs, got, want)
		}
	}
}

func TestLineLargerThanARecordIsRefusedWithoutReadingOn(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	c.sys.stdin = endless{}
	c.run(exitUsage, "pub", "orders")
	wantContains(t, c.stderr.String(), "larger than a record may be")
	c.run(exitUsage, "pub", "orders", "--whole")
}

// endless is a line that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
