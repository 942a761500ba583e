package tidy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const whyCommand = "what decides a landing is what the README tells people to run, or the two drift apart"

// LandingCommand finds out whether a script runs, as a whole command, the first `go test` command that a page shows in its fenced
// code.
func LandingCommand(t *Tree, pageName, script string) ([]Finding, error) {
	p, findings, err := t.readPage(pageName, whyCommand)
	if p == nil {
		return findings, err
	}
	command := ""
	for _, line := range p.code {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(strings.TrimPrefix(line, "$ ")); command == "" && strings.HasPrefix(line, "go test") {
			command = line
		}
	}
	if command == "" {
		return []Finding{{File: pageName, What: "shows no go test command in its code blocks", Why: whyCommand, Do: "name the command that runs the tests"}}, nil
	}
	text, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(script)))
	if err != nil {
		return nil, fmt.Errorf("read the script that decides a landing: %w", err)
	}
	// Before the command: the line's beginning, space, or variables for this one command. After it: nothing.
	runs := regexp.MustCompile(`(?m)^\s*([A-Z_]+=("[^"]*"|\S*)\s+)*` + regexp.QuoteMeta(command) + `\s*$`)
	if !runs.Match(text) {
		findings = append(findings, Finding{File: script, What: fmt.Sprintf("does not run %q, which %s names", command, pageName), Why: whyCommand, Do: "let both name one command"})
	}
	return findings, nil
}
