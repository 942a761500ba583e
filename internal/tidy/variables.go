package tidy

import (
	"go/ast"
	"go/token"
	"go/types"
)

const (
	whyVariable = "state of a package is shared by every node, test and simulation in the process, and nobody owns it"
	doVariable  = "make it a field of what owns it, or a function that returns a fresh value"
)

// Variables finds, in the packages that fit the patterns, package variables that change after their declaration. Pools that
// only save allocations (sync.Pool) and values computed once (sync.Once...) may stay.
func Variables(t *Tree, patterns []string) []Finding {
	var out []Finding
	for _, p := range t.selected(patterns) {
		out = append(out, t.changedVariables(p, true)...)
	}
	return out
}

func (t *Tree) changedVariables(p *Package, pools bool) []Finding {
	var out []Finding
	report := func(e ast.Expr) {
		if v := p.packageVariable(e); v != nil && !(pools && isPool(v.Type())) {
			out = append(out, t.finding(e.Pos(), "package variable "+v.Name()+" changes here", whyVariable, doVariable))
		}
	}
	for _, f := range p.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			for _, e := range p.changed(n) {
				report(e)
			}
			return true
		})
	}
	return out
}

// changed are the expressions that a node writes to or hands out as writable.
func (p *Package) changed(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.SendStmt:
		return []ast.Expr{n.Chan}
	case *ast.UnaryExpr:
		if n.Op == token.AND || n.Op == token.ARROW {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		return p.changedByCall(n)
	case *ast.SelectorExpr:
		// A method with a pointer receiver on a variable takes the variable's address.
		if s := p.Info.Selections[n]; s != nil && s.Kind() == types.MethodVal && takesAddress(s) {
			return []ast.Expr{n.X}
		}
	}
	return nil
}

func takesAddress(s *types.Selection) bool {
	_, wants := s.Obj().(*types.Func).Signature().Recv().Type().(*types.Pointer)
	_, has := s.Recv().Underlying().(*types.Pointer)
	return wants && !has && !s.Indirect()
}

// changedByCall knows the built-in functions that write to their first argument.
func (p *Package) changedByCall(call *ast.CallExpr) []ast.Expr {
	name, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	b, ok := p.Info.Uses[name].(*types.Builtin)
	if !ok {
		return nil
	}
	switch b.Name() {
	case "delete", "clear", "copy", "close":
		return call.Args[:1]
	}
	return nil
}

// packageVariable is the variable of this or another package that e is, or is a part of.
func (p *Package) packageVariable(e ast.Expr) *types.Var {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if _, selected := p.Info.Selections[x]; !selected { // a name of another package
				return asPackageVariable(p.Info.Uses[x.Sel])
			}
			e = x.X
		case *ast.Ident:
			return asPackageVariable(p.Info.Uses[x])
		default:
			return nil
		}
	}
}

func asPackageVariable(o types.Object) *types.Var {
	v, ok := o.(*types.Var)
	if !ok || v.IsField() || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() {
		return nil
	}
	return v
}

func isPool(t types.Type) bool {
	n, ok := t.(*types.Named)
	if !ok || n.Obj().Pkg() == nil || n.Obj().Pkg().Path() != "sync" {
		return false
	}
	return n.Obj().Name() == "Pool" || n.Obj().Name() == "Once"
}
