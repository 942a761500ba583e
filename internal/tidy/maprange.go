package tidy

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
)

const (
	whyMapRange = "the order of a map differs from run to run, so that a replay or a simulation with the same seed takes another way"
	doMapRange  = "range over slices.Sorted(maps.Keys(m)), or keep a sorted slice beside the map"
)

// sorting are the functions of package slices that give an iterator of a map an order, sortingInPlace those of slices and sort
// that order the slice they are given.
var (
	sorting        = []string{"Sorted", "SortedFunc", "SortedStableFunc"}
	sortingInPlace = []string{
		"slices.Sort", "slices.SortFunc", "slices.SortStableFunc", "sort.Slice", "sort.SliceStable", "sort.Strings", "sort.Ints",
	}
)

// MapRanges finds, in the packages that fit the patterns, every way of walking through a map in the map's own order: a range
// statement, an iterator of package maps that is not sorted at once, and Range of a sync.Map. A range that only collects into
// a slice is in order when the next statement sorts that slice.
func MapRanges(t *Tree, patterns []string) []Finding {
	var out []Finding
	for _, p := range t.selected(patterns) {
		for _, f := range p.Files {
			sorted := append(p.sortedCalls(f), p.sortedRanges(f)...)
			ast.Inspect(f, func(n ast.Node) bool {
				if what := p.mapOrder(n, sorted); what != "" {
					out = append(out, t.finding(n.Pos(), what, whyMapRange, doMapRange))
				}
				return true
			})
		}
	}
	return out
}

// mapOrder says how a node takes a map's own order, or "".
func (p *Package) mapOrder(n ast.Node, sorted []ast.Node) string {
	switch n := n.(type) {
	case *ast.RangeStmt:
		if of := p.Info.TypeOf(n.X); of != nil && isMap(of) && !slices.Contains(sorted, ast.Node(n)) {
			return "ranges over " + types.TypeString(of, types.RelativeTo(p.Types))
		}
	case *ast.CallExpr:
		if f := p.called(n); isMapIterator(f) && !slices.Contains(sorted, ast.Node(n)) {
			return fmt.Sprintf("uses maps.%s without sorting", f.Name())
		}
	case *ast.SelectorExpr:
		if f, ok := p.Info.Uses[n.Sel].(*types.Func); ok && f.FullName() == "(*sync.Map).Range" {
			return "ranges over a sync.Map"
		}
	}
	return ""
}

// sortedCalls are the expressions that are handed to a sorting function.
func (p *Package) sortedCalls(f *ast.File) []ast.Node {
	var out []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
			if f := p.called(call); f != nil && f.Pkg() != nil && f.Pkg().Path() == "slices" && slices.Contains(sorting, f.Name()) {
				out = append(out, ast.Unparen(call.Args[0]))
			}
		}
		return true
	})
	return out
}
