package tidy

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// switchesOf judges the type switches of one file.
func (t *Tree) switchesOf(p *Package, f *ast.File, sums []sumType) []Finding {
	var out []Finding
	var guarded []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSwitchStmt); ok && !slices.Contains(guarded, n) {
			out = append(out, t.switchFindings(p, s, sums)...)
		}
		list := statements(n)
		for i := 0; i+1 < len(list); i++ {
			if p.panics(list[i+1:i+2]) && isExprStmt(list[i+1]) {
				guarded = append(guarded, list[i]) // reached by what no case took
			}
		}
		return true
	})
	return out
}

func isExprStmt(s ast.Stmt) bool { _, ok := s.(*ast.ExprStmt); return ok }

func (t *Tree) switchFindings(p *Package, s *ast.TypeSwitchStmt, sums []sumType) []Finding {
	over := typeName(p.Info.TypeOf(switched(s)))
	i := slices.IndexFunc(sums, func(s sumType) bool { return s.name == over })
	if over == nil || i < 0 {
		return nil
	}
	missing, fallback := p.uncovered(s, sums[i].members)
	if len(missing) == 0 || fallback != nil && p.panics(fallback.Body) {
		return nil
	}
	what, do := "has no case for", "give each a case, or a default that panics"
	if fallback != nil {
		what, do = "gives to its default", "give each a case; a default is for the impossible and panics"
	}
	return []Finding{t.finding(s.Pos(), fmt.Sprintf("switch over %s.%s %s %s", over.Pkg().Name(), over.Name(), what, strings.Join(missing, ", ")),
		"a message that a switch forgets is dropped in silence, and whoever waits for its answer waits for ever", do)}
}

// switched is the value whose type a type switch asks for.
func switched(s *ast.TypeSwitchStmt) ast.Expr {
	var e ast.Expr
	switch a := s.Assign.(type) {
	case *ast.ExprStmt:
		e = a.X
	case *ast.AssignStmt:
		e = a.Rhs[0]
	}
	return ast.Unparen(e).(*ast.TypeAssertExpr).X
}

// uncovered are the members that no case names, and the default clause if there is one.
func (p *Package) uncovered(s *ast.TypeSwitchStmt, members []*types.TypeName) (missing []string, fallback *ast.CaseClause) {
	var covered []*types.TypeName
	for _, c := range s.Body.List {
		clause := c.(*ast.CaseClause)
		if clause.List == nil {
			fallback = clause
		}
		for _, e := range clause.List {
			if n := typeName(p.Info.TypeOf(e)); n != nil {
				covered = append(covered, n)
			}
		}
	}
	for _, m := range members {
		if !slices.ContainsFunc(covered, func(c *types.TypeName) bool { return c == m || types.IsInterface(c.Type()) && implements(m, c) }) {
			missing = append(missing, m.Name())
		}
	}
	return missing, fallback
}

// panics reports whether statements call panic.
func (p *Package) panics(list []ast.Stmt) bool {
	found := false
	for _, s := range list {
		ast.Inspect(s, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok && p.Info.Uses[name] == types.Universe.Lookup("panic") {
				found = true
			}
			return true
		})
	}
	return found
}
