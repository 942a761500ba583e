package tidy

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// actorType is a type of the tree that declares Receive(*Turn).
type actorType struct {
	name *types.TypeName
	doc  string
	pos  token.Pos
}

// spawn is one Spec literal: who is made, and what it accepts.
type spawn struct {
	pos    token.Pos
	accept types.Type // M of Spec[M]
	makes  []*types.TypeName
}

// cast is who acts in the tree, and how they are spawned.
type cast struct {
	runtime *types.Package // declares Turn, Spec and CellKind
	actors  []actorType
	spawns  []spawn
}

// findActors collects the actors and spawns of every package but the runtime itself; ok is false when the tree has no runtime.
func (t *Tree) findActors(runtime string) (h cast, ok bool) {
	for _, p := range t.Packages {
		if p.Path == runtime {
			h.runtime = p.Types
		}
	}
	if h.runtime == nil {
		return h, false
	}
	for _, p := range t.Packages {
		if p.Types != h.runtime {
			h.actors = append(h.actors, h.actorsOf(p)...)
		}
	}
	for _, p := range t.Packages {
		if p.Types != h.runtime {
			h.spawns = append(h.spawns, h.spawnsOf(p)...)
		}
	}
	return h, true
}

func (h *cast) actorsOf(p *Package) []actorType {
	var out []actorType
	p.typeSpecs(func(spec *ast.TypeSpec, doc *ast.CommentGroup) {
		if name, ok := p.Info.Defs[spec.Name].(*types.TypeName); ok && h.receives(name) {
			out = append(out, actorType{name: name, doc: doc.Text(), pos: spec.Pos()})
		}
	})
	return out
}

// receives reports whether a type itself, not one it embeds, declares Receive(*Turn).
func (h *cast) receives(name *types.TypeName) bool {
	n, ok := name.Type().(*types.Named)
	if !ok {
		return false
	}
	for m := range n.Methods() {
		params := m.Signature().Params()
		if m.Name() == "Receive" && params.Len() == 1 && h.isRuntime(typeName(params.At(0).Type()), "Turn") {
			return true
		}
	}
	return false
}

func (h *cast) isRuntime(o *types.TypeName, name string) bool {
	return o != nil && o.Pkg() == h.runtime && o.Name() == name
}

func (h *cast) isActor(o *types.TypeName) bool {
	return slices.ContainsFunc(h.actors, func(a actorType) bool { return a.name == o })
}

// spawnsOf are the Spec[M] literals of a package.
func (h *cast) spawnsOf(p *Package) []spawn {
	var out []spawn
	for _, f := range p.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if named, ok := types.Unalias(p.Info.TypeOf(lit)).(*types.Named); ok && h.isRuntime(named.Obj(), "Spec") && named.TypeArgs().Len() == 1 {
				out = append(out, spawn{pos: lit.Pos(), accept: types.Unalias(named.TypeArgs().At(0)), makes: h.madeBy(p, newField(lit))})
			}
			return true
		})
	}
	return out
}

// newField is the value of a literal's field New.
func newField(lit *ast.CompositeLit) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if k, ok := kv.Key.(*ast.Ident); ok && k.Name == "New" {
				return kv.Value
			}
		}
	}
	return nil
}

// madeBy are the actors that a New function makes: the actor types of its literals and calls. A named function of the same
// package is followed.
func (h *cast) madeBy(p *Package, newFunc ast.Expr) []*types.TypeName {
	if newFunc == nil {
		return nil
	}
	var body ast.Node = newFunc
	if name, ok := ast.Unparen(newFunc).(*ast.Ident); ok {
		body = p.declaration(p.Info.Uses[name])
	}
	var out []*types.TypeName
	if body == nil {
		return nil
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.CompositeLit, *ast.CallExpr:
			if t := p.Info.TypeOf(e.(ast.Expr)); t != nil {
				if o := typeName(t); o != nil && h.isActor(o) && !slices.Contains(out, o) {
					out = append(out, o)
				}
			}
		}
		return true
	})
	return out
}

// declaration is the function of this package that an object names; nil when it is not one.
func (p *Package) declaration(o types.Object) ast.Node {
	for _, f := range p.Files {
		for _, d := range f.Decls {
			if decl, ok := d.(*ast.FuncDecl); ok && o != nil && p.Info.Defs[decl.Name] == o {
				return decl
			}
		}
	}
	return nil
}
