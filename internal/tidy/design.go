package tidy

import (
	"fmt"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const whyDesign = "a page that walks the reader to places that are gone costs more than no page"

// Named finds, among the `code spans` of a page, paths of the tree that are not there and names of packages' declarations that
// are not declared. A span is a path when it begins with something at the root, ends with /, or ends like a file
// (`shardactor/host.go`, `wire/`, `storage/memlog.go:40`, `actors/*.go`); it is a name when it begins with a package of the
// tree and a capital follows (`wire.Publish`, `shardcore.Core.Step`). Other spans are left alone.
func Named(t *Tree, pageName string) ([]Finding, error) {
	p, findings, err := t.readPage(pageName, whyDesign)
	if p == nil {
		return findings, err
	}
	top, err := os.ReadDir(t.Root)
	if err != nil {
		return nil, fmt.Errorf("read the tree's root: %w", err)
	}
	var roots []string
	for _, e := range top {
		roots = append(roots, e.Name())
	}
	for _, s := range p.spans {
		if what := t.wrongName(s.text, roots); what != "" {
			findings = append(findings, Finding{File: pageName, Line: s.line, What: what, Why: whyDesign, Do: "name what is there now, or say it without backticks when it is only a plan"})
		}
	}
	return findings, nil
}

func (t *Tree) wrongName(span string, roots []string) string {
	if isPath(span, roots) {
		return t.wrongPath(span)
	}
	if symbol.MatchString(span) {
		return t.wrongSymbol(strings.Split(strings.TrimSuffix(span, "()"), "."))
	}
	return ""
}

var (
	pathShape  = regexp.MustCompile(`^(\./)?[A-Za-z0-9_.*-]+(/[A-Za-z0-9_.*-]+)*/?(:[A-Za-z0-9_]+)?$`)
	symbol     = regexp.MustCompile(`^[a-z][a-z0-9]*(\.[A-Z][A-Za-z0-9]*)(\.[A-Za-z][A-Za-z0-9]*)?(\(\))?$`)
	extensions = []string{".go", ".md", ".sh", ".py", ".txt", ".yaml", ".yml"}
)

func isPath(span string, roots []string) bool {
	if !pathShape.MatchString(span) {
		return false
	}
	file, _, _ := strings.Cut(strings.TrimPrefix(span, "./"), ":")
	first, _, below := strings.Cut(file, "/")
	return strings.HasSuffix(file, "/") || slices.Contains(extensions, path.Ext(file)) || below && slices.Contains(roots, first)
}

// wrongPath says what a path names that is not there, or "".
func (t *Tree) wrongPath(span string) string {
	file, place, _ := strings.Cut(span, ":")
	found, err := filepath.Glob(filepath.Join(t.Root, filepath.FromSlash(file)))
	if err != nil || len(found) == 0 {
		return fmt.Sprintf("names %s, which is not there", file)
	}
	if place == "" {
		return ""
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return fmt.Sprintf("names a place in %s, which can't be read", file)
	}
	if line, err := strconv.Atoi(place); err == nil {
		if line < 1 || line > strings.Count(string(text), "\n") {
			return fmt.Sprintf("names line %d of %s, which has not so many", line, file)
		}
		return ""
	}
	if !regexp.MustCompile(`\b` + place + `\b`).Match(text) {
		return fmt.Sprintf("names %s in %s, which does not have it", place, file)
	}
	return ""
}

// wrongSymbol says that a package of the tree does not declare a name, or "". Names of other packages are not judged.
func (t *Tree) wrongSymbol(parts []string) string {
	known := false
	for _, p := range t.Packages {
		if p.Types.Name() != parts[0] {
			continue
		}
		known = true
		if o := p.Types.Scope().Lookup(parts[1]); o != nil && (len(parts) == 2 || hasMember(o, parts[2])) {
			return ""
		}
	}
	if !known {
		return ""
	}
	return fmt.Sprintf("names %s, which package %s does not declare", strings.Join(parts, "."), parts[0])
}

func hasMember(o types.Object, name string) bool {
	if _, ok := o.(*types.TypeName); !ok {
		return false
	}
	found, _, _ := types.LookupFieldOrMethod(types.NewPointer(o.Type()), true, o.Pkg(), name)
	if found == nil { // a pointer to an interface has no methods
		found, _, _ = types.LookupFieldOrMethod(o.Type(), true, o.Pkg(), name)
	}
	return found != nil
}
