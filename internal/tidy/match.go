package tidy

import "strings"

// matches reports whether a package path fits a pattern: the path itself, or "a/..." for a and all below it.
func matches(pattern, path string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == below || strings.HasPrefix(path, below+"/")
	}
	return pattern == path
}

func matchesAny(patterns []string, path string) bool {
	for _, p := range patterns {
		if matches(p, path) {
			return true
		}
	}
	return false
}

// below returns an import path's place in the module, and whether it is in it.
func (t *Tree) below(importPath string) (string, bool) {
	if importPath == t.Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.Module+"/")
}

// standard reports whether an import path is of the standard library: its first element has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// under reports whether an import path is prefix or below it.
func under(prefix, importPath string) bool {
	return importPath == prefix || strings.HasPrefix(importPath, prefix+"/")
}

func underAny(prefixes []string, importPath string) bool {
	for _, p := range prefixes {
		if under(p, importPath) {
			return true
		}
	}
	return false
}

// selected are the packages that fit any of the patterns.
func (t *Tree) selected(patterns []string) []*Package {
	var out []*Package
	for _, p := range t.Packages {
		if matchesAny(patterns, p.Path) {
			out = append(out, p)
		}
	}
	return out
}
