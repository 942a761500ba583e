package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/storage/inspect"
)

// tool runs a command of felixd and returns its code and all that it printed.
func tool(args ...string) (int, string) {
	var out, err bytes.Buffer
	code := run(args, nil, &out, &err, nil)
	return code, out.String() + err.String()
}

// stoppedWith is the data directory of a daemon that has stopped, with a durable stream "kept" of n records, each in a file of its own.
func stoppedWith(t *testing.T, n int) (dir string) {
	t.Helper()
	r := start(t, t.TempDir(), "--durable-segment-bytes", "4096")
	r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	for i := range n {
		publishOnce(t, r, "kept", fmt.Sprint(i, " ", strings.Repeat("x", 3000)))
	}
	recorded(t, func() (model.LogID, error) { return logOf(r.dir, "kept") })
	if code := r.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, r.err)
	}
	return r.dir
}

// damage flips a bit of a file.
func damage(t *testing.T, name string, at int) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text[at] ^= 1
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// mission 175
func TestInspectShowsWhatAStartWouldDecideAndChangesNothing(t *testing.T) {
	dir := stoppedWith(t, 3)
	code, text := tool("inspect", dir)
	if code != exitOK || !strings.Contains(text, "opens") || !strings.Contains(text, "offsets 0 to 3") {
		t.Fatalf("exit code %d:\n%s", code, text)
	}
	shown := text
	damage(t, segments(t, dir, "kept")[1], 1000)
	code, text = tool("inspect", filepath.Join(dir, logFolder), "--json")
	object, _, _ := strings.Cut(text, "\nfelixd:")
	var report inspect.Report
	if err := json.Unmarshal([]byte(object), &report); err != nil || code != exitDamaged || report.Refuses() != 1 || len(report.Logs) != 3 {
		t.Fatalf("exit code %d, %v:\n%s", code, err, text)
	}
	kinds := map[string]*inspect.Log{}
	for i := range report.Logs {
		kinds[report.Logs[i].Kind] = &report.Logs[i]
	}
	for _, kind := range []string{"caches", "counters"} { // of the cache to begin with
		if l := kinds[kind]; l == nil || l.Verdict != inspect.Opens || !strings.HasPrefix(l.Dir, kind+"/") || !strings.Contains(shown, ", "+kind+", incarnation ") {
			t.Errorf("%s: %+v, shown as\n%s", kind, l, shown)
		}
	}
	if d := kinds["streams"].Damage; d == nil || d.Segment != 1 || d.Kind != "batch_checksum" {
		t.Fatalf("damage %+v", d)
	}
	if code, text := tool("inspect", dir, "--log", "nowhere"); code != exitUsage {
		t.Fatalf("a log that there is not: exit code %d:\n%s", code, text)
	}
}

func TestToolsRefuseADirectoryThatIsInUseOrIsNone(t *testing.T) {
	r := start(t, t.TempDir())
	defer r.stop(t)
	missing := filepath.Join(t.TempDir(), "missing")
	for _, args := range [][]string{{"inspect", r.dir}, {"inspect", t.TempDir()}, {"inspect", missing}, {"repair", missing, "x", "--cut-tail"}} {
		if code, text := tool(args...); code != exitDataDir {
			t.Errorf("%v: exit code %d: %s", args, code, text)
		}
	}
	if _, text := tool("inspect", r.dir); !strings.Contains(text, fmt.Sprint("pid ", os.Getpid())) {
		t.Errorf("it is not told who uses it: %s", text)
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Error("a tool made the directory that it was to look at")
	}
}

func TestRepairSaysWhatItWouldDoAndDoesItWhenTold(t *testing.T) {
	dir := stoppedWith(t, 4)
	bad := segments(t, dir, "kept")[2]
	damage(t, bad, 1000)
	log := filepath.Base(filepath.Dir(bad))
	if code, text := tool("repair", dir, log, "--cut-tail"); code != exitDamaged {
		t.Fatalf("a damage in the middle is no tail: exit code %d: %s", code, text)
	}
	before, err := os.ReadFile(bad)
	if err != nil {
		t.Fatal(err)
	}
	code, text := tool("repair", dir, log, "--cut-at-damage")
	if now, err := os.ReadFile(bad); code != exitOK || !strings.Contains(text, "would be done") || err != nil || !bytes.Equal(now, before) {
		t.Fatalf("exit code %d, %v: %s", code, err, text)
	}
	code, text = tool("repair", dir, log, "--cut-at-damage", "--yes")
	if code != exitOK || !strings.Contains(text, "done") || !strings.Contains(text, "offsets 0 to 2") || !strings.Contains(text, "salvaged") {
		t.Fatalf("exit code %d: %s", code, text)
	}

	r := start(t, dir)
	defer r.stop(t)
	publishOnce(t, r, "kept", "after")
	c := r.connect(t)
	defer closeClient(c)
	if got := records(t, c, "kept", 3); !strings.HasPrefix(got[1], "1 ") || got[2] != "after" {
		t.Fatalf("the log has %.20q", got)
	}
}

// What a refusal names is what a repair needs to be told.
func TestAMissingLogIsBegunAgainWithWhatTheRefusalNames(t *testing.T) {
	dir := stoppedWith(t, 2)
	gone := filepath.Dir(segments(t, dir, "kept")[0])
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	_, said := fails(t, dir)
	logID := regexp.MustCompile(`[0-9a-f]{32}`).FindString(said)
	if !strings.Contains(said, filepath.Base(gone)) || logID == "" {
		t.Fatal(said)
	}
	args := []string{"repair", dir, filepath.Base(gone), "--accept-empty", "--from-offset", "2", "--yes"}
	if code, text := tool(args...); code != exitUsage {
		t.Fatalf("without an identity: exit code %d: %s", code, text)
	}
	if code, text := tool(append(args, "--log-id", logID)...); code != exitOK || !strings.Contains(text, "offsets 2 to 2") {
		t.Fatalf("exit code %d: %s", code, text)
	}
	r := start(t, dir)
	defer r.stop(t)
	publishOnce(t, r, "kept", "after")
	c := r.connect(t)
	defer closeClient(c)
	if got := records(t, c, "kept", 1); got[0] != "after" {
		t.Fatalf("the log has %q", got)
	}
}

func TestRepairIsToldOneThingAtATime(t *testing.T) {
	for want, args := range map[string][]string{
		"say what to do":             {"repair", "d", "l"},
		"cut-at-damage":              {"repair", "d", "l", "--cut-tail", "--cut-at-damage"},
		"belongs to --accept-empty":  {"repair", "d", "l", "--cut-tail", "--from-offset", "1"},
		"--log-id: ":                 {"repair", "d", "l", "--accept-empty", "--log-id", "12"},
		"no log has the identity":    {"repair", "d", "l", "--accept-empty", "--log-id", strings.Repeat("0", 32)},
		"accepts 2 arg(s)":           {"repair", "d"},
		"none of full, sealed, lazy": {"inspect", "d", "--verify", "some"},
	} {
		if code, text := tool(args...); code != exitUsage || !strings.Contains(text, want) {
			t.Errorf("%v: exit code %d: %s", args, code, text)
		}
	}
}
