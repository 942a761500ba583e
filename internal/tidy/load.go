package tidy

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
)

// Tree is a module with the types of everything in it.
type Tree struct {
	Root     string // absolute
	Module   string // its import path
	Packages []*Package
	Sources  []Source // every Go file, tests and files of other systems included, sorted by path

	fset     *token.FileSet
	requires []string // paths of the modules that go.mod requires
	imports  map[string][]string
}

// Package is one package of the module: its files without tests, and their types.
type Package struct {
	Path        string // below the module's root; "." is the root
	Files       []*ast.File
	Types       *types.Package
	Info        *types.Info
	Imports     []string // full import paths
	TestImports []string // of its tests, in the package and beside it

	wrong []types.Error
}

// Load reads the module whose go.mod is in root. A package that does not compile is loaded as far as it goes; Broken tells.
func Load(root string) (*Tree, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("load module: %w", err)
	}
	mod, err := readGoMod(root)
	if err != nil {
		return nil, fmt.Errorf("load module: %w", err)
	}
	packages, err := listPackages(root)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", mod.Module.Path, err)
	}
	t := &Tree{Root: root, Module: mod.Module.Path, fset: token.NewFileSet(), imports: map[string][]string{}}
	for _, r := range mod.Require {
		t.requires = append(t.requires, r.Path)
	}
	if t.Sources, err = walkSources(root); err != nil {
		return nil, fmt.Errorf("load %s: %w", t.Module, err)
	}
	if err := t.check(packages); err != nil {
		return nil, fmt.Errorf("load %s: %w", t.Module, err)
	}
	return t, nil
}

// check gives types to the packages of the module, each after those it imports.
func (t *Tree) check(packages []listed) error {
	var foreign []string
	for _, p := range packages {
		t.imports[p.ImportPath] = p.Imports
		if !p.own() && p.ImportPath != "unsafe" && p.Name != "" {
			foreign = append(foreign, p.ImportPath)
		}
	}
	exports, err := listExports(t.Root, foreign)
	if err != nil {
		return err
	}
	from := &source{checked: map[string]*types.Package{}, compiled: compiledImporter(t.fset, exports)}
	for _, p := range packages {
		if !p.own() {
			continue
		}
		pkg, err := t.checkPackage(p, from)
		if err != nil {
			return err
		}
		from.checked[p.ImportPath] = pkg.Types
		t.Packages = append(t.Packages, pkg)
	}
	return nil
}

func (p *listed) own() bool { return p.Module != nil && p.Module.Main }

func (t *Tree) checkPackage(p listed, from types.Importer) (*Package, error) {
	path, _ := t.below(p.ImportPath)
	pkg := &Package{
		Path: path, Imports: p.Imports, TestImports: append(p.TestImports, p.XTestImports...),
		Info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{},
		},
	}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(t.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		pkg.Files = append(pkg.Files, f)
	}
	config := types.Config{Importer: from, Error: func(err error) {
		if e, ok := err.(types.Error); ok {
			pkg.wrong = append(pkg.wrong, e)
		}
	}}
	pkg.Types, _ = config.Check(p.ImportPath, t.fset, pkg.Files, pkg.Info) // every error went to the function above
	return pkg, nil
}

// source finds imported packages: those of the module from their source, others from what the compiler wrote.
type source struct {
	checked  map[string]*types.Package
	compiled types.Importer
}

// Import implements types.Importer.
func (s *source) Import(path string) (*types.Package, error) {
	if p := s.checked[path]; p != nil {
		return p, nil
	}
	return s.compiled.Import(path)
}

func compiledImporter(fset *token.FileSet, exports map[string]string) types.Importer {
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		file := exports[path]
		if file == "" {
			return nil, fmt.Errorf("import %s: no compiled types", path)
		}
		return os.Open(file)
	})
}

// finding places a finding at a position of the tree's source.
func (t *Tree) finding(pos token.Pos, what, why, do string) Finding {
	p := t.fset.Position(pos)
	return Finding{File: relative(t.Root, p.Filename), Line: p.Line, What: what, Why: why, Do: do}
}

func relative(root, file string) string {
	r, err := filepath.Rel(root, file)
	if err != nil {
		return filepath.ToSlash(file)
	}
	return filepath.ToSlash(r)
}

// Broken finds packages that do not compile: the other rules can't judge them.
func Broken(t *Tree) []Finding {
	var out []Finding
	for _, p := range t.Packages {
		if len(p.wrong) > 0 {
			e := p.wrong[0]
			out = append(out, t.finding(e.Pos, "does not compile: "+e.Msg, "rules that are judged by types can't see what has no type", "make it compile"))
		}
	}
	return out
}
