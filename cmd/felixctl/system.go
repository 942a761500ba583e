package main

import (
	"io"
	"os"
)

// system is everything felixctl touches outside the network and the files it is told to read.
type system struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	stdinTerminal, stdoutTerminal, stderrTerminal bool

	getenv  func(string) string
	workDir string // where felix-data/dev.json is looked for

	// interrupts, if not nil, yields the signals that ask to end, from now on and until stop is called. The end of the context comes of
	// the first of them.
	interrupts func() (signals <-chan os.Signal, stop func())
}

// isTerminal reports whether f is a terminal: a character device other than the null device.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
