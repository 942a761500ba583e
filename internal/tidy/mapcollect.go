package tidy

import (
	"go/ast"
	"go/types"
	"slices"
)

// sortedRanges are the range statements that only collect, x = append(x, k), and whose next statement sorts x.
func (p *Package) sortedRanges(f *ast.File) []ast.Node {
	var out []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		list := statements(n)
		for i := 0; i+1 < len(list); i++ {
			if r, ok := list[i].(*ast.RangeStmt); ok {
				if x := p.collects(r); x != nil && p.sorts(list[i+1], x) {
					out = append(out, r)
				}
			}
		}
		return true
	})
	return out
}

// statements is the list of statements that a node holds, if it is a block or a clause.
func statements(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

// collects is the variable that a range statement appends its key or value to, and does nothing else; nil when it does more.
func (p *Package) collects(r *ast.RangeStmt) types.Object {
	if len(r.Body.List) != 1 {
		return nil
	}
	a, ok := r.Body.List[0].(*ast.AssignStmt)
	if !ok || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
		return nil
	}
	to, ok := a.Lhs[0].(*ast.Ident)
	if !ok {
		return nil
	}
	call, ok := a.Rhs[0].(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return nil
	}
	fun, ok := call.Fun.(*ast.Ident)
	if !ok || p.Info.Uses[fun] != types.Universe.Lookup("append") || !p.names(call.Args[0], p.Info.Uses[to]) {
		return nil
	}
	if _, ok := call.Args[1].(*ast.Ident); !ok {
		return nil
	}
	return p.Info.Uses[to]
}

// sorts reports whether a statement is a call that sorts x.
func (p *Package) sorts(s ast.Stmt, x types.Object) bool {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 || !p.names(call.Args[0], x) {
		return false
	}
	f := p.called(call)
	return f != nil && slices.Contains(sortingInPlace, f.FullName())
}

func (p *Package) names(e ast.Expr, o types.Object) bool {
	name, ok := ast.Unparen(e).(*ast.Ident)
	return ok && o != nil && p.Info.Uses[name] == o
}

// called is the function or method that a call names, without its type arguments; nil for a function value.
func (p *Package) called(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	var name *ast.Ident
	switch x := fun.(type) {
	case *ast.Ident:
		name = x
	case *ast.SelectorExpr:
		name = x.Sel
	default:
		return nil
	}
	f, _ := p.Info.Uses[name].(*types.Func)
	return f
}

func isMapIterator(f *types.Func) bool {
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != "maps" {
		return false
	}
	return f.Name() == "Keys" || f.Name() == "Values" || f.Name() == "All"
}

// isMap reports whether a value of the type may be a map, type parameters included.
func isMap(t types.Type) bool {
	if p, ok := t.(*types.TypeParam); ok {
		return constraintHasMap(p.Constraint())
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

func constraintHasMap(constraint types.Type) bool {
	i, ok := constraint.Underlying().(*types.Interface)
	if !ok {
		return false
	}
	for n := range i.NumEmbeddeds() {
		switch e := i.EmbeddedType(n).(type) {
		case *types.Union:
			for k := range e.Len() {
				if isMap(e.Term(k).Type()) {
					return true
				}
			}
		default:
			if isMap(e) || constraintHasMap(e) {
				return true
			}
		}
	}
	return false
}
