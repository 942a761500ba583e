package tidy

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The fixtures are small modules below testdata. In testdata/house a line says what a rule has to find there:
//
//	count++ // want purity: count changes | variables: count changes
//
// and nothing else may be found.

var house = sync.OnceValues(func() (*Tree, error) { return Load("testdata/house") })

func loadHouse(t *testing.T) *Tree {
	t.Helper()
	tree, err := house()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// want is one expected finding.
type want struct {
	file, text string
	line       int
}

// wants reads what the fixtures say about one rule.
func wants(t *testing.T, root, rule string) []want {
	t.Helper()
	var out []want
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for n := 1; lines.Scan(); n++ {
			_, comment, _ := strings.Cut(lines.Text(), "// want ")
			for part := range strings.SplitSeq(comment, " | ") {
				if text, ok := strings.CutPrefix(part, rule+": "); ok {
					out = append(out, want{file: relative(root, path), line: n, text: text})
				}
			}
		}
		return lines.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatalf("no fixture wants anything of rule %s", rule)
	}
	return out
}

// exactly compares what a rule finds in the house with what its lines want.
func exactly(t *testing.T, rule string, got []Finding) {
	t.Helper()
	got = Sorted(got)
	for _, w := range wants(t, loadHouse(t).Root, rule) {
		i := slices.IndexFunc(got, func(f Finding) bool { return f.File == w.file && f.Line == w.line && strings.Contains(f.What, w.text) })
		if i < 0 {
			t.Errorf("%s:%d: rule %s does not find %q", w.file, w.line, rule, w.text)
			continue
		}
		got = slices.Delete(got, i, i+1)
	}
	for _, f := range got {
		t.Errorf("rule %s finds too much: %s", rule, f)
	}
}

// says compares findings without a line with texts, in order.
func says(t *testing.T, got []Finding, texts ...string) {
	t.Helper()
	got = Sorted(got)
	if len(got) != len(texts) {
		t.Errorf("%d findings, want %d: %s", len(got), len(texts), fmt.Sprint(got))
		return
	}
	for i, text := range texts {
		if !strings.Contains(got[i].String(), text) {
			t.Errorf("finding %d is %q, want %q in it", i, got[i], text)
		}
	}
}

func TestEveryFindingSaysWhereWhatWhyAndWhatToDo(t *testing.T) {
	tree := loadHouse(t)
	all := slices.Concat(Purity(tree, []string{"pure"}), MapRanges(tree, []string{"orders"}), SumTypes(tree, nil), Actors(tree, "actors"),
		Imports(tree, Layout{}), LongFiles(tree, 5), Doors(tree, []string{"disk"}, "door"), Alone(tree, []string{"high"}, nil))
	form := regexp.MustCompile(`^[a-z./_]+(:\d+)?: .+\. Why it matters: .+\. What to do: .+`)
	for _, f := range all {
		if !form.MatchString(f.String()) {
			t.Errorf("finding %q lacks something", f)
		}
	}
	if len(all) < 50 {
		t.Errorf("only %d findings were looked at", len(all))
	}
}

func TestFindingsAreSortedAndNotRepeated(t *testing.T) {
	a, b, c := Finding{File: "a", Line: 9}, Finding{File: "a", Line: 10}, Finding{File: "b", Line: 1}
	if got := Sorted([]Finding{c, b, a, b}); !slices.Equal(got, []Finding{a, b, c}) {
		t.Errorf("sorted to %v", got)
	}
}
