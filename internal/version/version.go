// Package version says which build this is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/felixd/felixd/wire"
)

// Number is the version of this source.
const Number = "0.1.0-dev"

// String is one line about a program: version, commit when the build knows it, protocol, Go.
func String(program string) string {
	return fmt.Sprintf("%s %s%s, protocol FLX1 version %d, %s %s/%s", program, Number, commit(), wire.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return " (" + s.Value[:12] + ")"
		}
	}
	return ""
}
