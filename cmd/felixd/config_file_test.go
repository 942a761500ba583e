package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/felixd/felixd/cmd/felixd/settingsfile"
)

// settingsFile writes a file of settings and returns its name.
func settingsFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// valueOf is what `felixd config` says of a variable: its value and where that comes from.
func valueOf(t *testing.T, variable string, environ []string, args ...string) (value, from string) {
	t.Helper()
	lines, _ := configured(t, environ, args...)
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, variable+" "); ok {
			value, from, _ = strings.Cut(strings.TrimSpace(rest), " ")
			return value, strings.TrimSpace(from)
		}
	}
	t.Fatalf("%s is not printed", variable)
	return "", ""
}

// mission 331
func TestAFileOfSettingsWinsOverVariablesAndGivesWayToFlags(t *testing.T) {
	name := settingsFile(t, "---\n# of the broker\npub_workers_per_conn: 6  # six\npub_queue_depth: 256\npub_inflight_bytes: '33554432'\n\ndata_dir: \"with # and: within\"\n")
	environ := []string{"FELIX_BROKER_CONFIG=" + name, "FELIX_BROKER_PUB_WORKERS_PER_CONN=3", "FELIX_BROKER_PUBLISH_WINDOW=11"}
	for variable, want := range map[string][2]string{
		"FELIX_BROKER_PUB_WORKERS_PER_CONN":   {"6", name + ":3: pub_workers_per_conn"},
		"FELIX_BROKER_PUB_QUEUE_DEPTH":        {"256", name + ":4: pub_queue_depth"},
		"FELIX_BROKER_PUBLISH_INFLIGHT_BYTES": {"33554432", name + ":5: pub_inflight_bytes"},
		"FELIX_BROKER_PUBLISH_WINDOW":         {"11", "FELIX_BROKER_PUBLISH_WINDOW"},
		"FELIX_CORE_SHARDS":                   {"0", "default"},
	} {
		if value, from := valueOf(t, variable, environ); value != want[0] || from != want[1] {
			t.Errorf("%s is %s from %s, want %s", variable, value, from, want)
		}
	}
	if value, from := valueOf(t, "FELIX_BROKER_PUB_WORKERS_PER_CONN", environ, "--executors", "7"); value != "7" || from != "--executors" {
		t.Errorf("beside a flag: %s from %s", value, from)
	}
	other := settingsFile(t, "pub_workers_per_conn: 9\r\n")
	if value, _ := valueOf(t, "FELIX_BROKER_PUB_WORKERS_PER_CONN", environ, "--config", other); value != "9" {
		t.Errorf("the variable's file was read although the flag names another one: %s", value)
	}
}

// mission 331
func TestAMistakeInAFileOfSettingsIsRefusedWithItsLine(t *testing.T) {
	for want, text := range map[string]string{
		`:2: unknown key "pub_worker_per_conn"; did you mean pub_workers_per_conn?`: "\npub_worker_per_conn: 4",
		`:1: unknown key "anything_else_at_all_of_mine"`:                            "anything_else_at_all_of_mine: 4",
		":2: pub_queue_depth is set in line 1 already":                              "pub_queue_depth: 1\npub_queue_depth: 2",
		`:1: pub_queue_depth: "many" is no whole number`:                            "pub_queue_depth: many",
		":1: pub_queue_depth: it has no value":                                      "pub_queue_depth:",
		"found unexpected end of stream":                                            "pub_queue_depth: '4",
		"is neither a word nor a number":                                            "pub_queue_depth: [4]",
		"settings are a flat list":                                                  "broker:\n  pub_queue_depth: 4",
	} {
		if code, said := tool("config", "--config", settingsFile(t, text)); code != exitUsage || !strings.Contains(said, want) {
			t.Errorf("%q: exit code %d: %s", text, code, said)
		}
	}
	if code, said := tool("dev", "--config", filepath.Join(t.TempDir(), "none.yml")); code != exitUsage || !strings.Contains(said, "--config") {
		t.Errorf("no file: exit code %d: %s", code, said)
	}
	if code, said := tool("config", "--config", settingsFile(t, strings.Repeat("#", settingsfile.BytesMax+1))); code != exitUsage || !strings.Contains(said, "no file of settings") {
		t.Errorf("a file without end: exit code %d: %.200s", code, said)
	}
}

// Every setting can be in the file, under a name of its own.
//
// mission 331
func TestEverySettingHasAKeyOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range settings() {
		if k := s.key(); seen[k] || !regexp.MustCompile(`^[a-z0-9_]+$`).MatchString(k) {
			t.Errorf("%s has the key %q", s.variable, k)
		}
		seen[s.key()] = true
	}
}
