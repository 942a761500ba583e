package tidy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Alone finds, in the packages that fit the patterns, tests that need more of the house than what they test: packages that it does not
// reach itself, that are not of its own top folder, and that are no helpers.
func Alone(t *Tree, patterns, helpers []string) []Finding {
	var out []Finding
	for _, p := range t.selected(patterns) {
		var reached map[string]bool
		for _, imported := range p.TestImports {
			own, ok := t.below(imported)
			if !ok || top(own) == top(p.Path) || matchesAny(helpers, own) {
				continue
			}
			if reached == nil {
				reached = t.reached(path.Join(t.Module, p.Path))
			}
			if !reached[imported] {
				out = append(out, Finding{
					File: p.Path, What: fmt.Sprintf("tests of %s need %s", p.Path, own),
					Why: "a part that is only tested together with what stands above it cannot be taken out, replaced or mended by itself",
					Do:  "put a stand-in into the test, or move the test to where both are known",
				})
			}
		}
	}
	return out
}

// top is the first folder of a package.
func top(packagePath string) string {
	first, _, _ := strings.Cut(packagePath, "/")
	return first
}

// reached are all packages that one imports, directly or not.
func (t *Tree) reached(from string) map[string]bool {
	out := map[string]bool{}
	for queue := slices.Clone(t.imports[from]); len(queue) > 0; queue = queue[1:] {
		if at := queue[0]; !out[at] {
			out[at] = true
			queue = append(queue, t.imports[at]...)
		}
	}
	return out
}
