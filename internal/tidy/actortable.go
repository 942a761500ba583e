package tidy

import (
	"regexp"
	"slices"
	"strings"
)

// actorTable is the protocol of an actor as its doc comment tells it:
//
//	path     shards/<n>, child of Host      lanes    data 1024 items / 8 MiB, control
//	blocks   never                          failure  stop
//
//	in               from             then
//	Publish          Session          one Answer
type actorTable struct {
	keys   map[string]string // path, lanes, blocks, failure
	rows   []string          // names of the first column, in order
	header bool              // in, from, then was there
}

// tableKeys are the entries that every table has.
var tableKeys = []string{"path", "lanes", "blocks", "failure"}

// columns are parted by a tab or by two or more spaces.
var columns = regexp.MustCompile(`\t|\s{2,}`)

// parseTable reads the indented lines of a doc comment's text. Several names in a row's first column are parted by commas; a
// row that begins with more space goes on with the row above.
func parseTable(doc string) actorTable {
	table := actorTable{keys: map[string]string{}}
	for line := range strings.Lines(doc) {
		text, indented := strings.CutPrefix(strings.TrimRight(line, " \n"), "\t")
		cells := columns.Split(text, -1)
		switch {
		case !indented || text == "":
		case len(cells) >= 3 && slices.Equal(cells[:3], []string{"in", "from", "then"}):
			table.header = true
		case !table.header:
			table.readKeys(cells)
		case cells[0] != "":
			for name := range strings.SplitSeq(cells[0], ",") {
				table.rows = append(table.rows, strings.TrimPrefix(strings.TrimSpace(name), "*"))
			}
		}
	}
	return table
}

func (t *actorTable) readKeys(cells []string) {
	for i := 0; i+1 < len(cells); i++ {
		if slices.Contains(tableKeys, cells[i]) && cells[i+1] != "" {
			t.keys[cells[i]] = cells[i+1]
			i++
		}
	}
}

// missing are the parts that a table must have and this one has not.
func (t *actorTable) missing() []string {
	var out []string
	for _, k := range tableKeys {
		if t.keys[k] == "" {
			out = append(out, k)
		}
	}
	if !t.header {
		out = append(out, "the heading in, from, then")
	}
	if t.header && len(t.rows) == 0 {
		out = append(out, "a row for each message")
	}
	return out
}
