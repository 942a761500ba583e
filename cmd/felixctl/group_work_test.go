//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
)

// quick are flags of a worker that ends when there is nothing to do.
func quick(command string, more ...string) []string {
	return append([]string{"group", "work", "orders", "g", "--exec", command, "--idle", "300ms", "--retry-delay", "1ms"}, more...)
}

// worked reads what --json printed: the lines of records, and the summary.
func worked(t *testing.T, out string) (records []workedLine, summary workSummary) {
	t.Helper()
	all := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range all[:len(all)-1] {
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
	out := c.run(exitOK, quick(`echo "$FELIX_NAMESPACE/$FELIX_STREAM/$FELIX_GROUP $FELIX_SHARD/$FELIX_OFFSET delivery $FELIX_ATTEMPTS: $(cat)"; echo "skipped $FELIX_SKIPPED_BEFORE" >&2`)...)
	wantText(t, out, "default/orders/g 0/0 delivery 1: r0\ndefault/orders/g 0/1 delivery 1: r1\ndefault/orders/g 0/2 delivery 1: r2\n")
	wantContains(t, c.stderr.String(), `working on group "g" of default/orders, 1 command at a time`, "skipped 0\n", "3 acked, 0 given back (0 put off, 0 failed), 0 dead letters, in ")
	v := b.Group("default/orders", 0, "g")
	if v.Cursor != 3 || len(v.Held)+len(v.Owed)+len(v.DeadLetters) > 0 {
		t.Errorf("the group is left as %+v", v)
	}
}

func TestExitCodeOfTheCommandSettlesTheRecord(t *testing.T) {
	b := queued(t, 4)
	c := newCLI(t).at(b, "")
	// r1 is put off once, r2 fails once, r3 is given up
	out := c.run(exitOK, quick(`p=$(cat); [ $FELIX_ATTEMPTS -gt 1 ] && exit 0; case $p in r1) exit 75;; r2) exit 3;; r3) echo bad; exit 65;; esac`, "--json")...)
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
	v := b.Group("default/orders", 0, "g")
	wantOffsets(t, "dead letters", v.DeadLetters, 3)
	if v.Cursor != 4 || len(v.Held)+len(v.Owed) > 0 {
		t.Errorf("the group is left as %+v", v)
	}
}

func TestFailuresAreToldAndWhatIsPutOffIsNot(t *testing.T) {
	c := newCLI(t).at(queued(t, 3), "").onTerminal()
	c.run(exitOK, quick(`p=$(cat); [ $FELIX_ATTEMPTS -gt 1 ] && exit 0; case $p in r0) exit 75;; r1) exit 3;; r2) kill -9 $$;; esac`)...)
	text := c.stderr.String()
	wantContains(t, text, "record 0/1, delivery 1: exit status 3", "record 0/2, delivery 1: signal: killed")
	if strings.Contains(text, "record 0/0") {
		t.Errorf("what is put off is told: %s", text)
	}
}

func TestRecordThatAlwaysFailsBecomesADeadLetter(t *testing.T) {
	b := queued(t, 1)
	c := newCLI(t).at(b, "")
	records, summary := worked(t, c.run(exitOK, quick("exit 1", "--json")...))
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
	out := c.run(exitOK, quick(command, "--concurrency", "3")...)
	if n := strings.Count(out, "\n"); n != 6 || b.Group("default/orders", 0, "g").Cursor != 6 {
		t.Errorf("%d commands have ended: %s", n, out)
	}
	wantContains(t, out, "3")
}

func TestOneCommandAtATimeUnlessToldOtherwise(t *testing.T) {
	c := newCLI(t).at(queued(t, 4), "")
	folder := t.TempDir()
	out := c.run(exitOK, quick("mkdir "+filepath.Join(folder, "alone")+" || echo not alone; rmdir "+filepath.Join(folder, "alone"))...)
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
	b := queued(t, 1)
	c := newCLI(t).at(b, "")
	stop, _ := c.start("group", "work", "orders", "g", "--stop-timeout", "400ms", "--exec", `trap "" TERM; echo begun; while :; do sleep 0.01; done`)
	c.stdout.await(t, "begun")
	if code := stop(); code != exitOK {
		t.Errorf("exit code %d: %s", code, c.stderr)
	}
	if v := b.Group("default/orders", 0, "g"); len(v.Owed) != 1 || len(v.Held) > 0 {
		t.Errorf("the group is left as %+v; standard error: %s", v, c.stderr)
	}
}

func TestLostConnectionIsToldAndTheWorkGoesOn(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	stop, _ := c.start("group", "work", "orders", "g", "--exec", "cat >/dev/null", "--json")
	b.Append("default/orders", 0, testbroker.Region("a"))
	c.stdout.await(t, `"offset":0,"attempts":1,"outcome":"acked"`)
	b.Drop(transport.CloseOverload)
	c.stdout.await(t, `{"event":"trouble","namespace":"default","stream":"orders","group":"g","error":"`)
	b.Append("default/orders", 0, testbroker.Region("b"))
	c.stdout.await(t, `"offset":1,"attempts":`)
	if code := stop(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.stderr)
	}
	wantContains(t, c.stdout.String(), `{"event":"summary",`)
}

func TestCommandThatTakesTooLongHasFailed(t *testing.T) {
	c := newCLI(t).at(queued(t, 1), "")
	records, summary := worked(t, c.run(exitOK, quick(`[ $FELIX_ATTEMPTS -gt 1 ] || exec sleep 1000`, "--timeout", "200ms", "--json")...))
	if len(records) != 2 || records[0].Outcome != failed || records[0].Exit != nil || !strings.Contains(records[0].Error, "its time was up") || summary.Acked != 1 {
		t.Errorf("records %+v, summary %+v", records, summary)
	}
}

func TestCommandWhoseClaimIsGoneIsEnded(t *testing.T) {
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

func TestClaimsAreProlongedWhileACommandRuns(t *testing.T) {
	b := queued(t, 1)
	c := newCLI(t).at(b, "")
	records, _ := worked(t, c.run(exitOK, quick("sleep 1", "--visibility", "300ms", "--json")...))
	if len(records) != 1 || b.Group("default/orders", 0, "g").Cursor != 1 {
		t.Errorf("it was handed out %d times", len(records))
	}
}

func TestOutputThatTheBackgroundKeepsOpenHoldsNothingUp(t *testing.T) {
	b := queued(t, 1)
	c := newCLI(t).at(b, "")
	file := filepath.Join(t.TempDir(), "pid")
	out := c.run(exitOK, quick("sleep 1000 & echo $! >"+file+"; echo done")...)
	wantText(t, out, "done\n")
	if at := b.Group("default/orders", 0, "g").Cursor; at != 1 {
		t.Errorf("the record was not acked; standard error: %s", c.stderr)
	}
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

func TestProgressHasRateInFlightFailedAndDead(t *testing.T) {
	w := newWorker(&app{sys: newCLI(t).sys}, groupName{}, workFlags{})
	defer w.kill()
	w.counts[failed], w.counts[hopeless], w.counts[postponed] = 3, 2, 1
	w.sampled = time.Now().Add(-2 * time.Second)
	w.acked = 100
	text := w.progress(client.ConsumerStats{Acked: 300, Running: 4})
	wantContains(t, text, "300 acked, ", "/s, 4 in flight, 1 put off, 3 failed, 2 dead")
	if w.rate < 90 || w.rate > 100 {
		t.Errorf("200 in 2 s is %v a second", w.rate)
	}
	if again := w.progress(client.ConsumerStats{Acked: 301}); !strings.Contains(again, fmt.Sprintf("%.1f/s", w.rate)) {
		t.Errorf("the rate is taken anew at once: %s", again)
	}
}

func TestABrokerThatIsGoneIsNotIdle(t *testing.T) {
	b := queued(t, 1)
	c, err := client.Connect(t.Context(), client.Options{Addrs: []string{b.Addr()}, TenantID: "t1", Token: testbroker.Token, CAPEM: b.CA().CertPEM, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
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
