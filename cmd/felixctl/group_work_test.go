//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// workUntil works on orders until the group has a position on shard 0 and nothing in hand or owed, and interrupts the work then. It returns
// what was written to standard output.
func (c *cli) workUntil(b *testbroker.Broker, position id.Offset, command string, more ...string) string {
	c.t.Helper()
	stop, _ := c.start(append([]string{"group", "work", "orders", "g", "--exec", command, "--retry-delay", "1ms"}, more...)...)
	finished := func(v testbroker.GroupView) bool { return v.Cursor == position && len(v.Held)+len(v.Owed) == 0 }
	for deadline := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		v := b.Group("default/orders", 0, "g")
		if finished(v) {
			break
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the group is at %+v, want it at %d with nothing left; standard error: %s", v, position, c.stderr)
		}
	}
	if code := stop(); code != exitOK {
		c.t.Fatalf("exit code %d: %s", code, c.stderr)
	}
	return c.stdout.String()
}

// worked reads what --json printed: the lines of records, and the summary. Troubles are left out: a slow machine has them.
func worked(t *testing.T, out string) (records []workedLine, summary workSummary) {
	t.Helper()
	all := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range all[:len(all)-1] {
		if strings.HasPrefix(line, `{"event":"trouble",`) {
			continue
		}
		var r workedLine
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Event != "record" {
			t.Fatalf("%v in %s", err, line)
		}
		records = append(records, r)
	}
	if err := json.Unmarshal([]byte(all[len(all)-1]), &summary); err != nil || summary.Event != "summary" {
		t.Fatalf("%v in %s", err, all[len(all)-1])
	}
	return records, summary
}

func TestWorkRunsACommandPerRecordWithItsFacts(t *testing.T) {
	b := queued(t, 3)
	c := newCLI(t).at(b, "")
	out := c.workUntil(b, 3, `echo "$FELIX_NAMESPACE/$FELIX_STREAM/$FELIX_GROUP $FELIX_SHARD/$FELIX_OFFSET delivery $FELIX_ATTEMPTS: $(cat)"; echo "skipped $FELIX_SKIPPED_BEFORE" >&2`)
	wantText(t, out, "default/orders/g 0/0 delivery 1: r0\ndefault/orders/g 0/1 delivery 1: r1\ndefault/orders/g 0/2 delivery 1: r2\n")
	wantContains(t, c.stderr.String(), `working on group "g" of default/orders, 1 command at a time`, "skipped 0\n", "3 acked, 0 given back (0 put off, 0 failed), 0 given up (exit code 65), in ")
	if v := b.Group("default/orders", 0, "g"); len(v.DeadLetters) > 0 {
		t.Errorf("the group is left as %+v", v)
	}
}

func TestExitCodeOfTheCommandSettlesTheRecord(t *testing.T) {
	b := queued(t, 4)
	c := newCLI(t).at(b, "")
	// r1 is put off once, r2 fails once, r3 is given up
	out := c.workUntil(b, 4, `p=$(cat); [ $FELIX_ATTEMPTS -gt 1 ] && exit 0; case $p in r1) exit 75;; r2) exit 3;; r3) echo bad; exit 65;; esac`, "--json")
	records, summary := worked(t, out)
	got := map[string]int{}
	for _, r := range records {
		got[fmt.Sprintf("%d.%d %s %d", r.Offset, r.Attempts, r.Outcome, *r.Exit)]++
	}
	for _, want := range []string{"0.1 acked 0", "1.1 put_off 75", "1.2 acked 0", "2.1 failed 3", "2.2 acked 0", "3.1 dead_letter 65"} {
		if got[want] != 1 {
			t.Errorf("%q came %d times in %v", want, got[want], got)
		}
	}
	if len(records) != 6 || summary.Acked != 3 || summary.Nacked != 2 || summary.DeadLettered != 1 || summary.PutOff != 1 || summary.Failed != 1 || summary.Redelivered != 2 {
		t.Errorf("%d records, summary %+v", len(records), summary)
	}
	wantContains(t, c.stderr.String(), "bad\n") // not among the objects
	wantOffsets(t, "dead letters", b.Group("default/orders", 0, "g").DeadLetters, 3)
}

func TestFailuresAreToldAndWhatIsPutOffIsNot(t *testing.T) {
	b := queued(t, 3)
	c := newCLI(t).at(b, "").onTerminal()
	c.workUntil(b, 3, `p=$(cat); [ $FELIX_ATTEMPTS -gt 1 ] && exit 0; case $p in r0) exit 75;; r1) exit 3;; r2) kill -9 $$;; esac`)
	text := c.stderr.String()
	wantContains(t, text, "record 0/1, delivery 1: exit status 3", "record 0/2, delivery 1: signal: killed")
	if strings.Contains(text, "record 0/0") {
		t.Errorf("what is put off is told: %s", text)
	}
}

func TestRecordThatAlwaysFailsBecomesADeadLetter(t *testing.T) {
	b := queued(t, 1)
	c := newCLI(t).at(b, "")
	records, summary := worked(t, c.workUntil(b, 1, "exit 1", "--json"))
	if len(records) != testbroker.DefaultGroupMaxAttempts || summary.Failed != testbroker.DefaultGroupMaxAttempts {
		t.Errorf("%d deliveries, summary %+v", len(records), summary)
	}
	wantOffsets(t, "dead letters", b.Group("default/orders", 0, "g").DeadLetters, 0)
}

func TestCommandThatCannotBeRunEndsTheWorkAndGivesTheRecordBack(t *testing.T) {
	for _, command := range []string{"/no/such/program", "."} {
		b := queued(t, 3)
		c := newCLI(t).at(b, "")
		c.run(exitOther, "group", "work", "orders", "g", "--exec", "exec "+command+"; exit 126")
		wantContains(t, c.stderr.String(), "the command cannot be run: exit status 12")
		v := b.Group("default/orders", 0, "g")
		if len(v.Owed) != 1 || len(v.Held)+len(v.DeadLetters) > 0 {
			t.Errorf("%s: the group is left as %+v", command, v)
		}
	}
}

func TestCommandsRunSideBySideUpToTheBound(t *testing.T) {
	b := queued(t, 6)
	c := newCLI(t).at(b, "")
	folder := t.TempDir()
	// each waits until three are there at once, and counts those beside it
	command := fmt.Sprintf(`cd %s; touch r$FELIX_OFFSET; while [ $(ls r* | wc -l) -lt 3 ]; do sleep 0.01; done; touch all; ls r* | wc -l; while [ ! -f all ]; do :; done; cat >/dev/null`, folder)
	out := c.workUntil(b, 6, command, "--concurrency", "3")
	if n := strings.Count(out, "\n"); n != 6 {
		t.Errorf("%d commands have ended: %s", n, out)
	}
	wantContains(t, out, "3")
}

func TestOneCommandAtATimeUnlessToldOtherwise(t *testing.T) {
	b := queued(t, 4)
	c := newCLI(t).at(b, "")
	folder := t.TempDir()
	out := c.workUntil(b, 4, "mkdir "+filepath.Join(folder, "alone")+" || echo not alone; rmdir "+filepath.Join(folder, "alone"))
	wantText(t, out, "")
}

func TestInterruptedWorkFinishesWhatRunsAndClaimsNoMore(t *testing.T) {
	b := queued(t, 5)
	c := newCLI(t).at(b, "")
	gate := filepath.Join(t.TempDir(), "gate")
	stop, _ := c.start("group", "work", "orders", "g", "--exec", "echo begun; while [ ! -f "+gate+" ]; do sleep 0.01; done; echo ended")
	c.stdout.await(t, "begun")
	go func() {
		c.stderr.await(t, "stopping: 1 command still running")
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Error(err)
		}
	}()
	if code := stop(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.stderr)
	}
	wantText(t, c.stdout.String(), "begun\nended\n")
	v := b.Group("default/orders", 0, "g")
	if v.Cursor != 1 || len(v.Held)+len(v.Owed) > 0 {
		t.Errorf("the group is left as %+v", v)
	}
}

// fifo makes a pipe with a name; ended yields when it was opened for writing and nobody has it open any more: all who did have ended.
func fifo(t *testing.T) (path string, ended <-chan error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(path)
		done <- err
	}()
	return path, done
}

func TestSecondInterruptEndsCommandsAndAllTheyStartedAndGivesTheRecordsBack(t *testing.T) {
	t.Parallel()
	b := queued(t, 1)
	c := newCLI(t).at(b, "")
	signals := make(chan os.Signal, 2)
	c.sys.interrupts = func() (<-chan os.Signal, func()) { return signals, func() {} }
	held, ended := fifo(t)
	stop, _ := c.start("group", "work", "orders", "g", "--exec", `exec 3>`+held+`; trap "" TERM; sleep 1000 & echo begun; wait; wait`)
	c.stdout.await(t, "begun")
	go func() {
		c.stderr.await(t, "interrupt again")
		signals <- syscall.SIGINT
		signals <- syscall.SIGINT
	}()
	if code := stop(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.stderr)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("what the command started still runs")
	}
	wantContains(t, c.stderr.String(), "the command was ended: the work was interrupted")
	if v := b.Group("default/orders", 0, "g"); len(v.Owed) != 1 || len(v.Held) > 0 {
		t.Errorf("the group is left as %+v", v)
	}
}

func TestStopTimeoutEndsCommandsAndGivesTheRecordsBack(t *testing.T) {
	t.Parallel()
	const stubborn = `trap "" TERM; echo begun; while :; do sleep 0.01; done`
	for timeout := 2 * time.Second; ; timeout *= 4 { // the record is given back within it, too: a slow machine gets more
		b := queued(t, 1)
		c := newCLI(t).at(b, "")
		stop, _ := c.start("group", "work", "orders", "g", "--stop-timeout", timeout.String(), "--exec", stubborn)
		c.stdout.await(t, "begun")
		code, v := stop(), b.Group("default/orders", 0, "g")
		if code == exitOK && len(v.Owed) == 1 && len(v.Held) == 0 {
			return
		}
		if 4*timeout > patience {
			t.Fatalf("exit code %d, the group is left as %+v; standard error: %s", code, v, c.stderr)
		}
	}
}

// A connection is lost under a poll that waits: what is settled meanwhile is sent again without a word.
func TestLostConnectionIsToldAndTheWorkGoesOn(t *testing.T) {
	var acked atomic.Bool
	waits := make(chan struct{}, 1)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"default/orders": 1}, Durable: true,
		OnGroupAnswer: func(_ *testbroker.Stream, request, _ wire.Message) bool {
			if _, ok := request.(*wire.GroupAck); ok {
				acked.Store(true)
			}
			return false
		},
		OnFrame: func(_ *testbroker.Stream, f testbroker.Frame) bool {
			if m, ok := f.Message().(*wire.GroupPoll); ok && m.WaitMillis > 0 && acked.Load() {
				select {
				case waits <- struct{}{}:
				default:
				}
			}
			return false
		}})
	c := newCLI(t).at(b, "")
	stop, _ := c.start("group", "work", "orders", "g", "--exec", "cat >/dev/null", "--json")
	b.Append("default/orders", 0, testbroker.Region("a"))
	c.stdout.await(t, `"offset":0,"attempts":1,"outcome":"acked"`)
	select {
	case <-waits:
	case <-time.After(patience):
		t.Fatal("it does not poll")
	}
	b.Drop(transport.CloseOverload)
	c.stdout.await(t, `{"event":"trouble","namespace":"default","stream":"orders","group":"g","error":"`)
	b.Append("default/orders", 0, testbroker.Region("b"))
	c.stdout.await(t, `"offset":1,"attempts":`)
	if code := stop(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.stderr)
	}
	wantContains(t, c.stdout.String(), `{"event":"summary",`)
}

// On a slow machine a command that ends at once may take too long as well.
func TestCommandThatTakesTooLongHasFailed(t *testing.T) {
	b := queued(t, 1)
	c := newCLI(t).at(b, "")
	records, summary := worked(t, c.workUntil(b, 1, `[ $FELIX_ATTEMPTS -gt 1 ] || exec sleep 1000`, "--timeout", "200ms", "--json"))
	late := 0
	for i, r := range records {
		if r.Outcome == succeeded && i > 0 {
			continue
		}
		if late++; r.Outcome != failed || r.Exit != nil || !strings.Contains(r.Error, "its time was up") {
			t.Errorf("delivery %d: %+v", i+1, r)
		}
	}
	if late == 0 || summary.Failed != uint64(late) {
		t.Errorf("%d were late, summary %+v", late, summary)
	}
}

func TestCommandWhoseClaimIsGoneIsEnded(t *testing.T) {
	t.Parallel()
	b := queued(t, 1)
	c := newCLI(t).at(b, "")
	stop, _ := c.start("group", "work", "orders", "g", "--visibility", "600ms", "--exec", `echo begun $FELIX_ATTEMPTS; exec sleep 1000`)
	c.stdout.await(t, "begun")
	other := newCLI(t).at(b, "")
	other.run(exitOK, "group", "seek", "orders", "g", "--to", "latest", "--yes")
	c.stderr.await(t, "the claim is gone")
	if code := stop(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.stderr)
	}
}

// The command runs until its claim was prolonged to more than three times what it was given for. It is handed out again only if this machine
// was so slow that an extension came too late.
func TestClaimsAreProlongedWhileACommandRuns(t *testing.T) {
	t.Parallel()
	const visibility = 300 * time.Millisecond
	gate := filepath.Join(t.TempDir(), "gate")
	var mu sync.Mutex
	var claimed, prolonged time.Time
	extensions, late := 0, false
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"default/orders": 1}, Durable: true,
		OnGroupAnswer: func(_ *testbroker.Stream, request, answer wire.Message) bool {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			switch m := request.(type) {
			case *wire.GroupPoll:
				if r, ok := answer.(*wire.GroupRecords); ok && len(r.Records) > 0 {
					claimed, prolonged = now, now
				}
			case *wire.GroupExtend:
				extensions++
				late = late || now.Sub(prolonged) >= visibility
				prolonged = now
				if now.Sub(claimed) > 3*visibility {
					if err := os.WriteFile(gate, nil, 0o600); err != nil {
						t.Error(err)
					}
				}
				if m.Offset != 0 {
					t.Errorf("the claim of offset %d was prolonged", m.Offset)
				}
			}
			return false
		}})
	b.Append("default/orders", 0, testbroker.Region("r0"))
	c := newCLI(t).at(b, "")
	records, _ := worked(t, c.workUntil(b, 1, "while [ ! -f "+gate+" ]; do sleep 0.05; done", "--visibility", visibility.String(), "--json"))
	mu.Lock()
	defer mu.Unlock()
	if len(records) != 1 && !late || extensions < 3 {
		t.Errorf("after %d extensions it was handed out %d times", extensions, len(records))
	}
}

func TestOutputThatTheBackgroundKeepsOpenHoldsNothingUp(t *testing.T) {
	t.Parallel()
	b := queued(t, 1)
	c := newCLI(t).at(b, "")
	file := filepath.Join(t.TempDir(), "pid")
	wantText(t, c.workUntil(b, 1, "sleep 1000 & echo $! >"+file+"; echo done"), "done\n")
	text, _ := os.ReadFile(file)
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("what was started in the background was ended: %v", err)
	}
}

func TestLinesOfCommandsDoNotMix(t *testing.T) {
	var out bytes.Buffer
	l := &lines{to: &out, before: ">"}
	for _, part := range []string{"a", "b\nc", "d\n\ne", strings.Repeat("x", lineMax), "y"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if err := l.flush(); err != nil || l.flush() != nil {
		t.Fatal(err)
	}
	wantText(t, out.String(), ">ab\n>cd\n\n>e"+strings.Repeat("x", lineMax-1)+">xy\n")
}

func TestPauseDoublesUpToAMinute(t *testing.T) {
	for _, c := range []struct {
		first    time.Duration
		attempts uint32
		want     time.Duration
	}{
		{time.Second, 0, time.Second}, {time.Second, 1, time.Second}, {time.Second, 4, 8 * time.Second}, {time.Second, 1 << 31, time.Minute},
		{time.Hour, 9, time.Hour}, {0, 1 << 31, 0},
	} {
		f := workFlags{retryDelay: c.first}
		if got := f.delayOf(client.Message{Attempts: c.attempts}, nil); got != c.want {
			t.Errorf("delivery %d after %v: %v, want %v", c.attempts, c.first, got, c.want)
		}
	}
}

func TestProgressHasRateInFlightFailedAndGivenUp(t *testing.T) {
	w := newWorker(&app{sys: newCLI(t).sys}, groupName{}, workFlags{})
	defer w.kill()
	w.counts[failed], w.counts[hopeless], w.counts[postponed] = 3, 2, 1
	now := time.Now()
	w.sampled, w.acked = now.Add(-2*time.Second), 100
	wantText(t, w.progress(now, client.ConsumerStats{Acked: 300, Running: 4}), "300 acked, 100.0/s, 4 in flight, 1 put off, 3 failed, 2 given up")
	again := w.progress(now.Add(rateTime-1), client.ConsumerStats{Acked: 301})
	wantContains(t, again, "301 acked, 100.0/s, ") // not taken anew at once
	wantContains(t, w.progress(now.Add(rateTime), client.ConsumerStats{Acked: 307}), "307 acked, 7.0/s, ")
}

// clientOfOneTry tries nothing twice. A machine that is too busy to answer its first dial is dialed again.
func clientOfOneTry(t *testing.T, b *testbroker.Broker) *client.Client {
	t.Helper()
	o := client.Options{Addrs: []string{b.Addr()}, TenantID: "t1", Token: testbroker.Token, CAPEM: b.CA().CertPEM, Attempts: 1}
	for deadline := time.Now().Add(patience); ; {
		c, err := client.Connect(t.Context(), o)
		if err == nil {
			t.Cleanup(func() { _ = c.Close(context.Background()) })
			return c
		}
		if !errors.Is(err, client.ErrUnreachable) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestABrokerThatIsGoneIsNotIdle(t *testing.T) {
	b := queued(t, 1)
	c := clientOfOneTry(t, b)
	at := broker{Client: c, namespace: "default"}
	w := newWorker(nil, groupName{Namespace: "default", Stream: "orders", Group: "g"}, workFlags{})
	if err := w.askWhetherThere(t.Context(), at); err != nil {
		t.Errorf("a broker that is there: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := w.askWhetherThere(t.Context(), at); err == nil {
		t.Error("a broker that is gone is taken for one that is there")
	}
	cancel()
	if err := w.askWhetherThere(ended, at); err == nil {
		t.Error("an interrupted question is taken for an answer")
	}
}

func TestIdleWorkAsksTheBrokerOfEveryShard(t *testing.T) {
	var mu sync.Mutex
	var asked []uint32
	gone := ^uint32(0)
	streams := map[string]uint32{"default/wide": 4}
	b := testbroker.New(t, testbroker.Options{Streams: streams, Durable: true, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		m, ok := f.Message().(*wire.GroupDescribe)
		if !ok {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, m.Shard)
		if m.Shard == gone {
			transport.Close(s.Conn, transport.CloseOverload)
		}
		return m.Shard == gone
	}})
	c := clientOfOneTry(t, b)
	at := broker{Client: c, namespace: "default"}
	w := newWorker(nil, groupName{Namespace: "default", Stream: "wide", Group: "g"}, workFlags{})
	err := w.askWhetherThere(t.Context(), at)
	mu.Lock()
	if err != nil || fmt.Sprint(asked) != "[0 1 2 3]" {
		t.Errorf("asked about shards %v: %v", asked, err)
	}
	gone = 2
	mu.Unlock()
	if err := w.askWhetherThere(t.Context(), at); err == nil {
		t.Error("the broker of a shard is gone, and it is taken for one that is there")
	}
}

func TestWorkEndsWhenThereWasNothingToDoForSoLong(t *testing.T) {
	c := newCLI(t).at(queued(t, 0), "")
	c.run(exitOK, "group", "work", "orders", "g", "--exec", "true", "--idle", "20ms")
	wantContains(t, c.stderr.String(), "0 acked, 0 given back (0 put off, 0 failed), 0 given up (exit code 65), in ")
}

func TestWhatEndsTheWorkIsToldOnce(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"default/orders": 1}, Features: testbroker.DefaultFeatures | testbroker.DurableFeatures})
	for _, more := range [][]string{nil, {"--json"}} {
		c := newCLI(t).at(b, "")
		c.run(exitRefused, append([]string{"group", "work", "orders", "g", "--exec", "true"}, more...)...)
		text := c.stderr.String()
		if n := strings.Count(text+c.stdout.String(), "has no log"); n != 1 {
			t.Errorf("%v: told %d times:\n%s%s", more, n, text, c.stdout)
		}
	}
}
