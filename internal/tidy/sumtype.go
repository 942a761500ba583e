package tidy

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// sumMark is the comment that says: this interface is exactly the types of its package that implement it.
const sumMark = "//sumtype:decl"

// sumType is an interface marked with sumMark.
type sumType struct {
	name    *types.TypeName
	pos     token.Pos
	members []*types.TypeName // of its package, sorted by name
}

// SumTypes finds marked interfaces that another package could implement, and type switches over marked interfaces that leave
// out a type and neither have a default that panics nor are followed by a panic. partial names interfaces, as "wire.Message",
// whose readers take only the messages of their side: switches over them are not judged.
func SumTypes(t *Tree, partial []string) []Finding {
	var out []Finding
	sums := t.sumTypes()
	for _, name := range partial {
		if !slices.ContainsFunc(sums, func(s sumType) bool { return s.String() == name }) {
			out = append(out, Finding{File: ".", What: "there is no marked interface " + name, Why: "an exception that fits nothing hides the next thing of that name", Do: "take it out of the exceptions"})
		}
	}
	for _, s := range sums {
		if sealMethod(s.name) == "" {
			out = append(out, t.finding(s.pos, "interface "+s.name.Name()+" is marked "+sumMark+" but has no unexported method",
				"another package can add a type that no switch knows", "give it an unexported method"))
		}
	}
	judged := slices.DeleteFunc(sums, func(s sumType) bool { return slices.Contains(partial, s.String()) })
	for _, p := range t.Packages {
		for _, f := range p.Files {
			out = append(out, t.switchesOf(p, f, judged)...)
		}
	}
	return out
}

// String is the package's name and the interface's.
func (s sumType) String() string { return s.name.Pkg().Name() + "." + s.name.Name() }

// sumTypes are the marked interfaces of all packages.
func (t *Tree) sumTypes() []sumType {
	var out []sumType
	for _, p := range t.Packages {
		p.typeSpecs(func(spec *ast.TypeSpec, doc *ast.CommentGroup) {
			name, ok := p.Info.Defs[spec.Name].(*types.TypeName)
			if ok && types.IsInterface(name.Type()) && hasMark(doc) {
				out = append(out, sumType{name: name, pos: spec.Pos(), members: members(name)})
			}
		})
	}
	return out
}

// typeSpecs visits the package-level types with their doc comments.
func (p *Package) typeSpecs(visit func(*ast.TypeSpec, *ast.CommentGroup)) {
	for _, f := range p.Files {
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			for _, s := range decl.Specs {
				spec := s.(*ast.TypeSpec)
				doc := spec.Doc
				if doc == nil && len(decl.Specs) == 1 {
					doc = decl.Doc
				}
				visit(spec, doc)
			}
		}
	}
}

func hasMark(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.TrimSpace(c.Text) == sumMark })
}

// sealMethod is the unexported method that closes an interface to other packages; "" when there is none.
func sealMethod(name *types.TypeName) string {
	i, ok := name.Type().Underlying().(*types.Interface)
	if !ok {
		return ""
	}
	for n := range i.NumMethods() {
		if m := i.Method(n); !m.Exported() {
			return m.Name()
		}
	}
	return ""
}

// members are the types of an interface's own package that implement it, interfaces aside.
func members(of *types.TypeName) []*types.TypeName {
	var out []*types.TypeName
	scope := of.Pkg().Scope()
	for _, name := range scope.Names() { // sorted
		if o, ok := scope.Lookup(name).(*types.TypeName); ok && !o.IsAlias() && !types.IsInterface(o.Type()) && implements(o, of) {
			out = append(out, o)
		}
	}
	return out
}

// implements compares method sets. With type parameters on either side names have to do.
func implements(o, of *types.TypeName) bool {
	i := of.Type().Underlying().(*types.Interface)
	pointer := types.NewPointer(o.Type())
	if !generic(o) && !generic(of) {
		return types.Implements(o.Type(), i) || types.Implements(pointer, i)
	}
	for n := range i.NumMethods() {
		m := i.Method(n)
		if found, _, _ := types.LookupFieldOrMethod(pointer, true, of.Pkg(), m.Name()); !isFunc(found) {
			return false
		}
	}
	return true
}

func generic(o *types.TypeName) bool {
	n, ok := o.Type().(*types.Named)
	return ok && n.TypeParams().Len() > 0
}

func isFunc(o types.Object) bool { _, ok := o.(*types.Func); return ok }

// typeName is the name behind a type, its pointer and its type arguments; nil when it has none.
func typeName(t types.Type) *types.TypeName {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj()
	}
	return nil
}
