// Package protocoldoc holds docs/protocol.md to the code: each frame it shows is one of the vectors and goes through package
// wire both ways, each message it shows decodes and encodes to the same text, each table says what the broker does, and each member of each
// message that package wire decodes has a row.
//
// The package has only tests.
package protocoldoc

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// block is one fenced block of the page.
type block struct {
	lang, title string // the words behind the fence: the language, and all the others
	line        int    // of the fence, from 1
	lines       []string
}

// table is one table of the page; cells are trimmed.
type table struct {
	line   int // of the header, from 1
	header []string
	rows   [][]string
}

type page struct {
	blocks []block
	tables []table
}

// protocol reads the page.
func protocol(t testing.TB) page {
	t.Helper()
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	return parse(string(text))
}

func parse(text string) (p page) {
	var open *block
	var rows *table
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\n")
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			lang, title, _ := strings.Cut(fence, " ")
			open = &block{lang: lang, title: title, line: number}
		case isFence:
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, line)
		case strings.HasPrefix(line, "|") && rows == nil:
			rows = &table{line: number, header: cells(line)}
		case strings.HasPrefix(line, "|"):
			rows.rows = append(rows.rows, cells(line))
		case rows != nil:
			p.tables = append(p.tables, table{line: rows.line, header: rows.header, rows: rows.rows[1:]})
			rows = nil
		}
	}
	return p
}

func cells(line string) []string {
	out := strings.Split(strings.Trim(line, "|"), "|")
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// of returns the blocks of a language; none is a failure.
func (p page) of(t testing.TB, lang string) (out []block) {
	t.Helper()
	for _, b := range p.blocks {
		if b.lang == lang {
			out = append(out, b)
		}
	}
	if len(out) == 0 {
		t.Fatalf("the page has no block of %s", lang)
	}
	return out
}

// table returns the one table whose header begins so.
func (p page) table(t testing.TB, header ...string) table {
	t.Helper()
	var found []table
	for _, x := range p.tables {
		if len(x.header) >= len(header) && strings.Join(x.header[:len(header)], "|") == strings.Join(header, "|") {
			found = append(found, x)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the page has %d tables that begin with %v, want 1", len(found), header)
	}
	return found[0]
}

var quoted = regexp.MustCompile("`([^`]*)`")

// words are the `quoted` ones of a cell.
func words(cell string) (out []string) {
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestThePageIsReadAsItIsWritten(t *testing.T) {
	p := parse("# x\n| a | b |\n|---|---|\n| 1 | `2` and `3` |\n\n```hex ack ok\n00  x = 0\n```\n")
	if len(p.blocks) != 1 || p.blocks[0].lang != "hex" || p.blocks[0].title != "ack ok" || p.blocks[0].line != 6 || len(p.blocks[0].lines) != 1 {
		t.Errorf("blocks are %+v", p.blocks)
	}
	rows := p.table(t, "a", "b").rows
	if len(rows) != 1 || rows[0][0] != "1" || strings.Join(words(rows[0][1]), ",") != "2,3" {
		t.Errorf("rows are %q", rows)
	}
}
