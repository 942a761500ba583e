package tidy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// codeSpan is `text` in a page.
type codeSpan struct {
	text string
	line int
}

var spans = regexp.MustCompile("`([^`]+)`")

// page is a Markdown file: its prose and its fenced code apart.
type page struct {
	spans  []codeSpan // in prose
	blocks []string   // paragraphs, list items and table rows, each on one line
	code   []string   // lines of fenced code, trimmed
}

// readPage reads a page of the tree. A page that is not there is a finding, not an error.
func (t *Tree) readPage(name, why string) (*page, []Finding, error) {
	text, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, []Finding{{File: name, What: "the page is not there", Why: why, Do: "write it"}}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read page: %w", err)
	}
	return parsePage(string(text)), nil, nil
}

var startsBlock = regexp.MustCompile(`^\s*([-*+|#>]|\d+\.)`)

func parsePage(text string) *page {
	p := &page{}
	fenced, joined := false, false // joined: the next line goes on with the last block
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced, joined = !fenced, false
			continue
		}
		if fenced {
			p.code = append(p.code, strings.TrimSpace(line))
			continue
		}
		for _, m := range spans.FindAllStringSubmatch(line, -1) {
			p.spans = append(p.spans, codeSpan{text: m[1], line: number})
		}
		switch {
		case strings.TrimSpace(line) == "":
			joined = false
		case joined && !startsBlock.MatchString(line):
			p.blocks[len(p.blocks)-1] += " " + strings.TrimSpace(line)
		default:
			p.blocks = append(p.blocks, strings.TrimSpace(line))
			joined = true
		}
	}
	return p
}
