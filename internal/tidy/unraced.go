package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const whyUnraced = "the race detector is spared only what it cannot find anything in"

// Unraced holds a list of packages that the race detector leaves out against their source. A line is an import path, or one and the word
// `drives` behind it; # begins a comment. Neither such a package nor its tests start a goroutine, with a go statement or by handing a function to a
// method Go, as that of a WaitGroup, and no test of it is parallel, unless it drives programs:
// then it is one of those in the folders drivers, whose goroutines wait for processes that no detector of theirs can see into.
func Unraced(t *Tree, list string, drivers []string) ([]Finding, error) {
	text, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(list)))
	if err != nil {
		return nil, fmt.Errorf("read the list of packages without the race detector: %w", err)
	}
	var out []Finding
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		at := Finding{File: list, Line: i + 1, Why: whyUnraced}
		folder, ours := t.below(fields[0])
		switch {
		case !ours || !t.has(folder):
			at.What, at.Do = fmt.Sprintf("%s is no package of this module", fields[0]), "take it out of the list"
			out = append(out, at)
		case len(fields) == 1:
			starts, err := t.goStatements(folder)
			if err != nil {
				return nil, err
			}
			for _, s := range starts {
				s.What = fmt.Sprintf("starts a goroutine, and %s leaves %s to itself", list, fields[0])
				s.Why, s.Do = whyUnraced, "take the package out of the list"
				out = append(out, s)
			}
		case len(fields) > 2 || fields[1] != "drives" || !matchesAny(drivers, folder):
			at.What = fmt.Sprintf("%q is neither a package nor one of %s that drives programs", strings.Join(fields, " "), strings.Join(drivers, ", "))
			at.Do = "write the import path alone, or move what drives programs there"
			out = append(out, at)
		}
	}
	return out, nil
}

// has is whether the module has a package in that folder, if only of tests.
func (t *Tree) has(folder string) bool {
	return slices.ContainsFunc(t.Sources, func(s Source) bool { return path.Dir(s.File) == folder })
}

// goStatements finds where a folder's files start goroutines, tests included. What is left to be said is what is wrong with it.
func (t *Tree) goStatements(folder string) ([]Finding, error) {
	var out []Finding
	for _, s := range t.Sources {
		if path.Dir(s.File) != folder {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, s.File, s.text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("look for goroutines: %w", err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if begins(n) {
				out = append(out, Finding{File: s.File, Line: fset.Position(n.Pos()).Line})
			}
			return true
		})
	}
	return out, nil
}

// begins reports whether from a node on something runs beside what comes behind it.
func begins(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		method, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		if method.Sel.Name == "Parallel" || method.Sel.Name == "RunParallel" {
			return true
		}
		if method.Sel.Name != "Go" || len(n.Args) != 1 {
			return false
		}
		_, function := n.Args[0].(*ast.FuncLit)
		return function
	}
	return false
}
