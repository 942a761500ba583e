package main

import (
	"errors"
	"fmt"
	"strings"
)

// Exit codes of felixd. They are part of its interface: a supervisor may decide by them.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitListen  = 3
	exitDataDir = 4
	exitDrain   = 5
	exitForced  = 6
	exitDamaged = 7
)

var exitCodes = [...]struct {
	code int
	what string
}{
	{exitOK, "stopped as asked, everything drained"},
	{exitFailure, "failed while running; the last line says why"},
	{exitUsage, "a flag, a variable or an argument is wrong, or the command is not available"},
	{exitListen, "an address could not be listened on"},
	{exitDataDir, "the data directory cannot be used, or another felixd uses it"},
	{exitDrain, "draining took longer than it may; what was left was cut off"},
	{exitForced, "stopped at once by a second signal"},
	{exitDamaged, "the catalog or the log of a durable stream or a cache is damaged or missing; the last line says which and where"},
}

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// exitCode is the code for an error; what cobra itself finds wrong is a mistake of usage.
func exitCode(err error) int {
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitUsage
}

func exitCodeHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, c := range exitCodes {
		fmt.Fprintf(&b, "  %d  %s\n", c.code, c.what)
	}
	return b.String()
}
