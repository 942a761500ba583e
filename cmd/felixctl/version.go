package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  felixctl version --json", Args: cobra.NoArgs,
		RunE: does(func(*cobra.Command, []string) error {
			v := versionOf(debug.ReadBuildInfo())
			return a.result(v, "felixctl %s (%s)", v.Version, v.Go)
		}),
	}
}

type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
}

// versionOf reads what the build recorded.
func versionOf(info *debug.BuildInfo, ok bool) version {
	if !ok {
		return version{Version: "unknown", Go: "unknown"}
	}
	v := version{Version: info.Main.Version, Go: info.GoVersion}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	return v
}
