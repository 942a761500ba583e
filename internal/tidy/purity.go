package tidy

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
)

// Names of packages whose functions bring in what a pure package must be given: time, chance, and the outside.
var (
	clockFunctions = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	seededRandom   = []string{"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf"}
	outside        = []string{"os", "io/ioutil", "plugin", "syscall", "crypto/rand", "net/http", "net/rpc", "net/smtp"} // and below
	outsideAlone   = []string{"net", "log"}                                                                             // net/netip, net/url and log/slog only compute
)

const (
	whyPure = "a core that takes time, chance and the outside only as inputs gives the same answer to the same inputs: it can be replayed, fuzzed and simulated"
	doPure  = "take it as an argument or an input of Step, and let the shell provide it"
)

// Purity finds, in the packages that fit the patterns: reads of a clock, randomness without a seed of its own, goroutines and
// selects, the packages of the outside world, init functions, and package variables that change.
func Purity(t *Tree, patterns []string) []Finding {
	var out []Finding
	for _, p := range t.selected(patterns) {
		for _, f := range p.Files {
			out = append(out, t.impureImports(f)...)
			ast.Inspect(f, func(n ast.Node) bool {
				if what := p.impure(n); what != "" {
					out = append(out, t.finding(n.Pos(), what, whyPure, doPure))
				}
				return true
			})
		}
		out = append(out, t.changedVariables(p, false)...)
	}
	return out
}

func (t *Tree) impureImports(f *ast.File) []Finding {
	var out []Finding
	for _, spec := range f.Imports {
		p := spec.Path.Value[1 : len(spec.Path.Value)-1]
		if underAny(outside, p) || slices.Contains(outsideAlone, p) {
			out = append(out, t.finding(spec.Pos(), "a pure package imports "+p, whyPure, doPure))
		}
	}
	return out
}

// impure says what is wrong with a node, or "".
func (p *Package) impure(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a pure package starts a goroutine"
	case *ast.SelectStmt:
		return "a pure package selects, which chooses at random"
	case *ast.FuncDecl:
		if n.Recv == nil && n.Name.Name == "init" {
			return "a pure package has an init function"
		}
	case *ast.Ident:
		if f, ok := p.Info.Uses[n].(*types.Func); ok {
			return impureFunction(f)
		}
	}
	return ""
}

func impureFunction(f *types.Func) string {
	if f.Pkg() == nil || f.Signature().Recv() != nil {
		return ""
	}
	switch from := f.Pkg().Path(); from {
	case "time":
		if slices.Contains(clockFunctions, f.Name()) {
			return "a pure package uses time." + f.Name()
		}
	case "math/rand", "math/rand/v2":
		if !slices.Contains(seededRandom, f.Name()) {
			return fmt.Sprintf("a pure package uses the global randomness of %s.%s", from, f.Name())
		}
	}
	return ""
}
