package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/felixd/felixd/cmd/felixd/settingsfile"
)

// configVariable names the file of settings; --config wins over it.
const configVariable = "FELIX_BROKER_CONFIG"

// key is the name of a setting in a file: that of its variable without FELIX_ or FELIX_BROKER_, in small letters, unless the protocol's first
// broker had another one.
func (s *setting) key() string {
	switch s.variable {
	case "FELIX_BROKER_PUBLISH_INFLIGHT_BYTES":
		return "pub_inflight_bytes"
	case "FELIX_BROKER_PUBLISH_CONN_INFLIGHT_BYTES":
		return "pub_conn_inflight_bytes"
	case "FELIX_PUBLISH_QUEUE_WAIT_MS":
		return "publish_queue_wait_timeout_ms"
	default:
		name := strings.TrimPrefix(s.variable, "FELIX_")
		return strings.ToLower(strings.TrimPrefix(name, "BROKER_"))
	}
}

// readConfigFile reads a file of settings. Every mistake is named with its line; an unknown key is one, since it would be without effect.
func readConfigFile(path string, all []*setting) (map[string]settingsfile.Value, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, settingsfile.BytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	return settingsfile.Parse(path, content, func(name string) string {
		if slices.ContainsFunc(all, func(s *setting) bool { return s.key() == name }) {
			return ""
		}
		name = name[:min(len(name), keyTold)]
		return fmt.Sprintf("unknown key %q%s", name, meant(name, all))
	})
}

// keyTold is how much of a key that nobody knows is told, in bytes: more than the longest that is known.
const keyTold = 64

// meant proposes the key that is nearest to one that nobody knows.
func meant(name string, all []*setting) string {
	best, distance := "", 4
	for _, s := range all {
		if d := editDistance(s.key(), name); d < distance {
			best, distance = s.key(), d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}
