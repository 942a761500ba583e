package tidy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// listed is what `go list` tells about one package.
type listed struct {
	ImportPath   string
	Name         string
	Dir          string
	Export       string // file with the types of a compiled package
	Standard     bool
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Module       *struct {
		Path string
		Main bool
	}
}

// goMod is the part of `go mod edit -json` that is needed.
type goMod struct {
	Module  struct{ Path string }
	Require []struct{ Path string }
}

// listPackages returns every package of the module at root and all they need, each after what it imports.
func listPackages(root string) ([]listed, error) {
	return list(root, "-e", "-deps", "-json=ImportPath,Name,Dir,Standard,GoFiles,Imports,TestImports,XTestImports,Module", "./...")
}

// listExports returns where the compiled types of the packages are, compiling what is not compiled yet.
func listExports(root string, paths []string) (map[string]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	packages, err := list(root, append([]string{"-export", "-json=ImportPath,Export", "--"}, paths...)...)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(packages))
	for _, p := range packages {
		out[p.ImportPath] = p.Export
	}
	return out, nil
}

func list(root string, args ...string) ([]listed, error) {
	out, err := goCommand(root, append([]string{"list"}, args...)...)
	if err != nil {
		return nil, err
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, fmt.Errorf("read the answer of go list: %w", err)
		}
		packages = append(packages, p)
	}
}

func readGoMod(root string) (goMod, error) {
	var mod goMod
	out, err := goCommand(root, "mod", "edit", "-json")
	if err != nil {
		return mod, err
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return mod, fmt.Errorf("read the answer of go mod edit: %w", err)
	}
	return mod, nil
}

// goCommand runs the go command in dir, for this module alone, and returns what it prints.
func goCommand(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s in %s: %w: %s", args[0], dir, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}
