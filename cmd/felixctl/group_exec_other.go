//go:build !unix

package main

import (
	"context"
	"os/exec"
)

// shell is a command line for the shell.
func shell(ctx context.Context, line string) *exec.Cmd {
	return exec.CommandContext(ctx, "cmd", "/C", line)
}

// endGroup ends the shell: there are no process groups here.
func endGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may have ended
}
