//go:build !unix

package machine

import (
	"errors"
	"os/exec"
	"time"
)

// CPUTime is the CPU time that this process has used so far; systems other than Unix are not asked.
func CPUTime() (time.Duration, error) {
	return 0, errors.New("read CPU time: this system is not asked for it")
}

// apart has nothing to do where there are no process groups.
func apart(*exec.Cmd) {}
