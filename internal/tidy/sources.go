package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Source is one Go file of the tree.
type Source struct {
	File  string // relative to the root, with forward slashes
	Lines int
	Test  bool

	text []byte
}

// walkSources reads every Go file below root, except in testdata and in folders that begin with a dot or an underscore.
func walkSources(root string) ([]Source, error) {
	var out []Source
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if file != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if path.Ext(d.Name()) != ".go" {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		lines := bytes.Count(text, []byte("\n"))
		out = append(out, Source{File: relative(root, file), Lines: lines, Test: strings.HasSuffix(file, "_test.go"), text: text})
		return nil
	})
	return out, err
}

// LongFiles finds files, tests aside, of more than most lines.
func LongFiles(t *Tree, most int) []Finding {
	var out []Finding
	for _, s := range t.Sources {
		if !s.Test && s.Lines > most {
			out = append(out, Finding{
				File: s.File, Line: most + 1, What: fmt.Sprintf("has %d lines, more than %d", s.Lines, most),
				Why: "a file is one idea that a reader keeps in mind", Do: "find the second idea in it and give it a file with its name",
			})
		}
	}
	return out
}

// Sleeps finds time.Sleep in tests, under whatever name the file imports time by.
func Sleeps(t *Tree) ([]Finding, error) {
	var out []Finding
	for _, s := range t.Sources {
		if !s.Test {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, s.File, s.text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("look for sleeps: %w", err)
		}
		for _, pos := range sleepsIn(f) {
			out = append(out, Finding{
				File: s.File, Line: fset.Position(pos).Line, What: "a test sleeps",
				Why: "a sleep is too short on a busy machine and too long everywhere else",
				Do:  "wait for the event itself, on a channel with a deadline, or use virtual time",
			})
		}
	}
	return out, nil
}

func sleepsIn(f *ast.File) []token.Pos {
	name := importName(f, "time")
	var out []token.Pos
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == name && n.Sel.Name == "Sleep" {
				out = append(out, n.Pos())
			}
		case *ast.Ident:
			if name == "." && n.Name == "Sleep" {
				out = append(out, n.Pos())
			}
		}
		return true
	})
	return out
}

// importName is what a file calls the standard package importPath; "" when it does not import it.
func importName(f *ast.File, importPath string) string {
	for _, spec := range f.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}
