package tidy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Place says what one package, or a group of them, may import. The standard library is always allowed; Pure narrows it.
type Place struct {
	Package string   // pattern below the module: "wire", "cmd/..."; the longest that fits counts, an exact one first
	May     []string // patterns of packages of this module
	Third   []string // other modules' import path prefixes
}

// Layout is the whole import table.
type Layout struct {
	Places    []Place
	TestThird []string // what any test may import besides
	Where     string   // the file that holds this table, for the advice
}

const whyDirection = "arrows between packages run one way, so that a part can be read, tested and replaced without what stands above it"

// Imports finds packages without a place and imports that the table does not allow. Tests may import any package of the
// module; other modules only by Third and TestThird.
func Imports(t *Tree, layout Layout) []Finding {
	var out []Finding
	for _, p := range t.Packages {
		place, ok := layout.place(p.Path)
		if !ok {
			out = append(out, Finding{
				File: p.Path, What: "package " + p.Path + " is not in the import table", Why: whyDirection,
				Do: "add it to the table in " + layout.Where + " with what it may import",
			})
			continue
		}
		for _, imported := range p.Imports {
			if !t.allowed(place, imported) {
				out = append(out, t.importFinding(p, imported, fmt.Sprintf("package %s may not import %s", p.Path, imported),
					"move the code to where the import is allowed, or change the table in "+layout.Where+" together with DESIGN.md"))
			}
		}
		for _, imported := range p.TestImports {
			if _, own := t.below(imported); !own && !t.allowed(place, imported) && !underAny(layout.TestThird, imported) {
				out = append(out, Finding{
					File: p.Path, What: fmt.Sprintf("tests of %s may not import %s", p.Path, imported), Why: "each further module is code that somebody has to follow",
					Do: "do without it, or add it to the tests' list in " + layout.Where,
				})
			}
		}
	}
	return out
}

func (l Layout) place(path string) (Place, bool) {
	best := -1
	for i, p := range l.Places {
		if p.Package == path {
			return p, true
		}
		if matches(p.Package, path) && (best < 0 || len(p.Package) > len(l.Places[best].Package)) {
			best = i
		}
	}
	if best < 0 {
		return Place{}, false
	}
	return l.Places[best], true
}

func (t *Tree) allowed(place Place, imported string) bool {
	if own, ok := t.below(imported); ok {
		return matchesAny(place.May, own)
	}
	return standard(imported) || underAny(place.Third, imported)
}

// importFinding points at the import declaration.
func (t *Tree) importFinding(p *Package, imported, what, do string) Finding {
	for _, f := range p.Files {
		for _, spec := range f.Imports {
			if spec.Path.Value == `"`+imported+`"` {
				return t.finding(spec.Pos(), what, whyDirection, do)
			}
		}
	}
	return Finding{File: p.Path, What: what, Why: whyDirection, Do: do}
}

// Apart keeps two parts of the house from being seen by one package.
type Apart struct {
	A, B   string   // patterns below the module
	Except []string // patterns of packages that put everything together
	Why    string
}

// Separate finds packages, tests aside, that import something of both sides. A side's own packages count as that side.
func Separate(t *Tree, rules []Apart) []Finding {
	var out []Finding
	for _, rule := range rules {
		for _, p := range t.Packages {
			if matchesAny(rule.Except, p.Path) {
				continue
			}
			a, b := t.touches(p, rule.A), t.touches(p, rule.B)
			if a != "" && b != "" {
				out = append(out, Finding{
					File: p.Path, What: fmt.Sprintf("package %s sees both %s and %s", p.Path, a, b), Why: rule.Why,
					Do: "let only " + strings.Join(rule.Except, ", ") + " see both",
				})
			}
		}
	}
	return out
}

func (t *Tree) touches(p *Package, pattern string) string {
	if matches(pattern, p.Path) {
		return p.Path
	}
	for _, i := range p.Imports {
		if own, ok := t.below(i); ok && matches(pattern, own) {
			return own
		}
	}
	return ""
}

// Never is something that some packages must not reach, however many imports lie between.
type Never struct {
	From []string // patterns below the module
	To   []string // import path prefixes; those of this module in full
	Why  string
}

// Reach finds forbidden ways through the imports, and shows one.
func Reach(t *Tree, rules []Never) []Finding {
	var out []Finding
	for _, rule := range rules {
		for _, p := range t.selected(rule.From) {
			if way := t.way(path.Join(t.Module, p.Path), rule.To); way != nil {
				out = append(out, t.importFinding(p, way[1], fmt.Sprintf("package %s reaches %s", p.Path, strings.Join(way[1:], " -> ")),
					"cut the way at the import that does not belong"))
				out[len(out)-1].Why = rule.Why
			}
		}
	}
	return out
}

// way is the shortest way from a package to one of the prefixes, both ends included; nil when there is none.
func (t *Tree) way(from string, to []string) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at != from && underAny(to, at) {
			var way []string
			for ; at != ""; at = before[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			return way
		}
		for _, next := range t.imports[at] {
			if _, seen := before[next]; !seen {
				before[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}
