package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// configVariable names the file of settings; --config wins over it.
const configVariable = "FELIX_BROKER_CONFIG"

// configFileBytes is the most that a file of settings may have: hundreds of times what all settings need.
const configFileBytes = 1 << 20

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

// fileValue is what a file says of a setting, and where.
type fileValue struct {
	text string
	line int
}

// readConfigFile reads a file of settings. Every mistake is named with its line; an unknown key is one, since it would be without effect.
func readConfigFile(path string, all []*setting) (map[string]fileValue, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, configFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	if len(content) > configFileBytes {
		return nil, fmt.Errorf("--config %s: it has more than %d bytes, and is no file of settings", path, configFileBytes)
	}
	return parseConfigFile(path, string(content), all)
}

// parseConfigFile reads the part of YAML that settings need: a flat mapping of names to plain or quoted values, with comments.
func parseConfigFile(path, content string, all []*setting) (map[string]fileValue, error) {
	values := map[string]fileValue{}
	var wrong []error
	n := 0
	for line := range strings.Lines(content) {
		n++
		name, value, err := configLine(strings.TrimRight(line, " \t\r\n"))
		before, twice := values[name]
		switch {
		case err != nil:
		case name == "":
			continue
		case twice:
			err = fmt.Errorf("%s is set in line %d already", name, before.line)
		case !slices.ContainsFunc(all, func(s *setting) bool { return s.key() == name }):
			err = fmt.Errorf("unknown key %q%s", name, meant(name, all))
		default:
			values[name] = fileValue{value, n}
			continue
		}
		wrong = append(wrong, fmt.Errorf("%s:%d: %w", path, n, err))
	}
	return values, errors.Join(wrong...)
}

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

// configLine is the key and the value of one line, none for a line without.
func configLine(line string) (name, value string, err error) {
	if text := strings.TrimLeft(line, " \t"); text == "" || text[0] == '#' || line == "---" {
		return "", "", nil
	}
	name, rest, ok := strings.Cut(line, ":")
	if !ok || strings.ContainsFunc(name, notInKey) || name == "" || rest != "" && rest[0] != ' ' {
		return "", "", fmt.Errorf("%q is no line like `pub_workers_per_conn: 4`; settings are a flat list", line)
	}
	value, err = scalar(strings.TrimLeft(rest, " "))
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", name, err)
	}
	return name, value, nil
}

func notInKey(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }

// scalar is a plain value, or what stands between quotes.
func scalar(text string) (string, error) {
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		inside, after, ok := strings.Cut(text[1:], text[:1])
		after = strings.TrimLeft(after, " ")
		if !ok || strings.Contains(inside, `\`) || after != "" && after[0] != '#' {
			return "", fmt.Errorf("%s is no value in quotes; quotes and backslashes within are not understood", text)
		}
		return inside, nil
	}
	text, _, _ = strings.Cut(text, " #")
	text = strings.TrimRight(text, " ")
	if text == "" || text[0] == '#' {
		return "", errors.New(`it has no value; write "" for an empty one`)
	}
	if strings.ContainsRune("[]{}&*!|>%@`", rune(text[0])) || strings.HasPrefix(text, "- ") {
		return "", fmt.Errorf("%s is neither a word nor a number; put it into quotes if it is meant as it stands", text)
	}
	return text, nil
}
