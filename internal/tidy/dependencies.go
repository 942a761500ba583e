package tidy

import (
	"fmt"
	"slices"
	"strings"
)

// sentenceWords is how many words a sentence about a module has at least, its path aside.
const sentenceWords = 6

// Dependencies finds modules that the tree imports, tests included, and that a page has no sentence about. A module is named by
// its path, or by its path without the host.
func Dependencies(t *Tree, pageName string) ([]Finding, error) {
	const why = "each module is code that somebody has to follow: whoever adds it says what it does for us and who keeps it"
	p, findings, err := t.readPage(pageName, why)
	if p == nil {
		return findings, err
	}
	for _, module := range t.directModules() {
		if !slices.ContainsFunc(p.blocks, func(b string) bool { return isSentenceAbout(b, module) }) {
			findings = append(findings, Finding{
				File: pageName, What: fmt.Sprintf("has no sentence about %s", module), Why: why,
				Do: fmt.Sprintf("add one that names it and has at least %d more words, or do without the module", sentenceWords),
			})
		}
	}
	return findings, nil
}

// directModules are the modules whose packages the tree imports, sorted.
func (t *Tree) directModules() []string {
	var out []string
	for _, p := range t.Packages {
		for _, i := range slices.Concat(p.Imports, p.TestImports) {
			if _, own := t.below(i); own || standard(i) {
				continue
			}
			if m := t.moduleOf(i); !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	slices.Sort(out)
	return out
}

// moduleOf is the longest required module path that an import path is below; the import path itself when none is.
func (t *Tree) moduleOf(importPath string) string {
	best := ""
	for _, m := range t.requires {
		if under(m, importPath) && len(m) > len(best) {
			best = m
		}
	}
	if best == "" {
		return importPath
	}
	return best
}

func isSentenceAbout(block, module string) bool {
	_, short, _ := strings.Cut(module, "/")
	name := module
	if !strings.Contains(block, module) {
		name = short
	}
	if name == "" || !strings.Contains(block, name) {
		return false
	}
	words := 0
	for w := range strings.FieldsSeq(block) {
		if !strings.Contains(w, name) && strings.ContainsFunc(w, isLetter) {
			words++
		}
	}
	return words >= sentenceWords
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
