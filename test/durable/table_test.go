package durable

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// wanted are the ids that the table has to have a row for.
func wanted() (ids []string) {
	for _, rows := range []struct {
		letter string
		count  int
	}{{"A", 28}, {"B", 26}, {"C", 10}, {"M", 13}, {"E", 24}, {"F", 19}, {"G", 30}, {"H", 7}, {"I", 27}, {"J", 13}, {"K", 9}, {"L", 15}} {
		for n := range rows.count {
			ids = append(ids, rows.letter+strconv.Itoa(n+1))
		}
	}
	for n := range 16 {
		ids = append(ids, fmt.Sprintf("DUR-%02d", n+1))
	}
	for n := range 12 {
		ids = append(ids, fmt.Sprintf("CAC-%02d", n+1))
	}
	for n := range 14 {
		ids = append(ids, fmt.Sprintf("QUE-%02d", n+1))
	}
	return append(ids, "REP-10", "REP-11", "STR-04", "STR-07", "STR-08", "STR-11", "STR-12", "STR-14", "OPS-01", "OPS-02", "OPS-05", "OPS-11", "OPS-14", "OPS-15")
}

// tested is one row of the table.
type tested struct {
	id    string
	tests []string // package.Name
	note  string
}

// rows are those of the tables of a page whose first cell is an id.
func rows(t *testing.T, page string) (all []tested) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ([A-Z]\d+|[A-Z]{3}-\d\d) \| (.*?) \| (.*?) ?\|$`)
	name := regexp.MustCompile("`([^`]+)`")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		r := tested{id: m[1], note: m[3]}
		for _, n := range name.FindAllStringSubmatch(m[2], -1) {
			r.tests = append(r.tests, n[1])
		}
		all = append(all, r)
	}
	return all
}

// source is a test as it is written.
type source struct {
	head string // its comment and its name
	file string // all of its file
}

// find looks for a test of the module by package and name.
func find(t *testing.T, full string) (source, bool) {
	t.Helper()
	dot := strings.LastIndexByte(full, '.')
	if dot < 0 {
		return source{}, false
	}
	paths, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(full[:dot]), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "func "+full[dot+1:]+"(") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && f.Name.Name == full[dot+1:] && strings.HasPrefix(f.Name.Name, "Test") {
				doc := ""
				if f.Doc != nil {
					doc = f.Doc.Text()
				}
				return source{head: doc + "\n" + f.Name.Name, file: string(text)}, true
			}
		}
	}
	return source{}, false
}

// says reports whether a test cites an id: in its name, in the comment above it, alone or in a range, or as the first word of a case in its
// file.
func (s source) says(id string) bool {
	if regexp.MustCompile(`\b`+id+`\b`).MatchString(s.head) || strings.Contains(s.file, `"`+id+" ") {
		return true
	}
	if compact := strings.ReplaceAll(id, "-", ""); regexp.MustCompile(`Test` + compact + `(_|[A-Z])`).MatchString(s.head) {
		return true
	}
	number, err := strconv.Atoi(id[1:])
	if err != nil {
		return false
	}
	for _, m := range regexp.MustCompile(`\b([A-Z])(\d+)(?:-| to )[A-Z]?(\d+)\b`).FindAllStringSubmatch(s.head, -1) {
		from, _ := strconv.Atoi(m[2])
		to, _ := strconv.Atoi(m[3])
		if m[1] == id[:1] && from <= number && number <= to {
			return true
		}
	}
	return false
}

// Every row of the crash matrix and every field case of durable streams has a test that is there and says so, or a sentence that says why not.
func TestEveryRowOfTheMatrixHasItsTestOrItsReason(t *testing.T) {
	all := rows(t, "../crash/README.md")
	var have []string
	for _, r := range all {
		if slices.Contains(have, r.id) {
			t.Errorf("%s has two rows", r.id)
		}
		have = append(have, r.id)
		if len(r.tests) == 0 && len(strings.Fields(r.note)) < 3 {
			t.Errorf("%s has neither a test nor a reason", r.id)
		}
		for _, name := range r.tests {
			s, ok := find(t, name)
			switch {
			case !ok:
				t.Errorf("%s: there is no test %s", r.id, name)
			case !s.says(r.id):
				t.Errorf("%s: %s does not say that it is about it: cite the id in the comment above it", r.id, name)
			}
		}
	}
	for _, id := range wanted() {
		if !slices.Contains(have, id) {
			t.Errorf("%s has no row", id)
		}
	}
	if len(all) != len(wanted()) {
		t.Errorf("%d rows, %d ids", len(all), len(wanted()))
	}
}
