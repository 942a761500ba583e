package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// leaves are the commands below c that do something, but for those that cobra adds.
func leaves(c *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, child := range c.Commands() {
		switch {
		case child.Hidden || child.Name() == "help" || child.Name() == "completion":
		case child.HasSubCommands():
			out = append(out, leaves(child)...)
		default:
			out = append(out, child)
		}
	}
	return out
}

// TestEveryCommandShowsItselfInAnExampleThatIsOne parses each line of each example with the command that it shows.
func TestEveryCommandShowsItselfInAnExampleThatIsOne(t *testing.T) {
	all := leaves((&app{}).rootCommand())
	if len(all) < 30 {
		t.Fatalf("only %d commands were found", len(all))
	}
	for _, c := range all {
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s has no example of itself", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			if problem := misquoted(line); problem != "" {
				t.Errorf("%s: the example %q: %s", c.CommandPath(), strings.TrimSpace(line), problem)
			}
		}
	}
}

// misquoted says what is wrong with a line that calls felixctl: a command or a flag that is not there. It is empty for other lines.
func misquoted(line string) string {
	_, call, ok := strings.Cut(line, "felixctl ")
	if !ok {
		return ""
	}
	root := (&app{}).rootCommand()
	c, rest, err := root.Find(strings.Fields(call))
	switch {
	case err != nil:
		return err.Error()
	case c.HasSubCommands():
		return "it names no command"
	}
	for _, word := range rest {
		if word == "--" || word == "--exec" { // what follows is no flag of ours
			break
		}
		name, long := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if long && c.Flag(name) == nil && c.InheritedFlags().Lookup(name) == nil {
			return "there is no --" + name
		}
	}
	return ""
}

func TestEveryCommandThatAPageQuotesIsOne(t *testing.T) {
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := 0
	for _, name := range append(names, "../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			start := strings.TrimPrefix(line, "go run ./cmd/")
			if _, after, piped := strings.Cut(line, "| felixctl "); piped && !strings.HasPrefix(line, "|") {
				start = "felixctl " + after
			}
			if !strings.HasPrefix(start, "felixctl ") {
				continue
			}
			quoted++
			start, _, _ = strings.Cut(start, " #")
			start, _, _ = strings.Cut(start, " | ")
			if problem := misquoted(start); problem != "" {
				t.Errorf("%s: %q: %s", filepath.Base(name), strings.TrimSpace(start), problem)
			}
		}
	}
	if quoted < 40 {
		t.Errorf("only %d commands were found", quoted)
	}
}

func TestAnExampleThatIsWrongIsFound(t *testing.T) {
	for line, want := range map[string]bool{
		"felixctl pub orders hello --key a": true, "felixctl pub orders --kee a": false, "felixctl cache fetch a": false,
		"felixctl group": false, "felixctl group work s g --exec 'jq --slurp'": true, "jq .": true,
	} {
		if got := misquoted(line) == ""; got != want {
			t.Errorf("%q is right: %v, want %v", line, got, want)
		}
	}
}
