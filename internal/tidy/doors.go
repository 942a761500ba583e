package tidy

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
)

// fileFunctions are the functions that reach the disk, by the path of their package; those of the system's packages that are called like one
// of os count too.
var fileFunctions = map[string][]string{
	"os": {"Open", "OpenFile", "OpenRoot", "OpenInRoot", "Create", "CreateTemp", "NewFile", "DirFS", "CopyFS", "ReadFile", "WriteFile", "ReadDir", "Mkdir", "MkdirAll", "MkdirTemp",
		"Remove", "RemoveAll", "Rename", "Truncate", "Link", "Symlink", "Readlink", "Chmod", "Chown", "Lchown", "Chtimes", "Stat", "Lstat"},
	"io/ioutil":             {"ReadFile", "WriteFile", "ReadDir", "TempDir", "TempFile"},
	"path/filepath":         {"Walk", "WalkDir", "Glob", "EvalSymlinks"},
	"syscall":               systemFiles,
	"golang.org/x/sys/unix": systemFiles,
}

var systemFiles = []string{"Open", "Openat", "Openat2", "Creat", "Mkdir", "Mkdirat", "Unlink", "Unlinkat", "Rename", "Renameat", "Renameat2", "Truncate", "Link", "Symlink", "Rmdir", "Stat", "Lstat"}

// Doors finds functions that reach the disk in packages that fit the patterns, other than the one that is the door to it.
func Doors(t *Tree, patterns []string, door string) []Finding {
	var out []Finding
	for _, p := range t.selected(patterns) {
		if p.Path == door {
			continue
		}
		for _, f := range p.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				if name := p.fileFunction(n); name != "" {
					out = append(out, t.finding(n.Pos(), "the disk is reached by "+name,
						"what is durable, and what a crash leaves, is decided in one place: a file that is opened elsewhere no test of power cuts and full disks sees",
						"use what "+door+" offers, and let the program that composes say which disk it is"))
				}
				return true
			})
		}
	}
	return out
}

// fileFunction names the function that a node uses to reach the disk; empty for other nodes.
func (p *Package) fileFunction(n ast.Node) string {
	id, ok := n.(*ast.Ident)
	if !ok {
		return ""
	}
	f, ok := p.Info.Uses[id].(*types.Func)
	if !ok || f.Pkg() == nil || f.Signature().Recv() != nil || !slices.Contains(fileFunctions[f.Pkg().Path()], f.Name()) {
		return ""
	}
	return fmt.Sprintf("%s.%s", f.Pkg().Name(), f.Name())
}
