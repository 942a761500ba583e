package machine

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// Facts is what a figure means nothing without.
type Facts struct {
	Go         string `json:"go"`
	System     string `json:"system"`            // operating system, architecture and kernel
	CPU        string `json:"cpu,omitempty"`     // model; empty when the system does not tell
	CPUs       int    `json:"cpus"`              // of the machine, as far as this process sees it
	GOMAXPROCS int    `json:"gomaxprocs"`        // of this process
	Allowed    []int  `json:"allowed,omitempty"` // CPUs that this process may run on; nil when the system does not tell
}

// Read asks the system.
func Read() Facts {
	f := Facts{
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPU: cpuModel(),
		CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		f.System += " " + strings.TrimSpace(string(kernel))
	}
	if cpus, err := CPUs(); err == nil {
		f.Allowed = cpus
	}
	return f
}

// cpuModel is the first model name of the machine's own list.
func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Module is a module that a program was built with.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// Modules lists the modules of this program that match one of the paths, in the order of the paths.
func Modules(paths ...string) []Module {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	return pick(info, paths)
}

// ModulesOf is Modules for the program in a file.
func ModulesOf(file string, paths ...string) ([]Module, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the modules of %s: %w", file, err)
	}
	return pick(info, paths), nil
}

func pick(info *debug.BuildInfo, paths []string) []Module {
	var out []Module
	for _, path := range paths {
		i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == path })
		if i < 0 {
			continue
		}
		m := info.Deps[i]
		if m.Replace != nil {
			m = m.Replace
		}
		out = append(out, Module{Path: path, Version: m.Version})
	}
	return out
}
