// Command felixctl publishes, subscribes, reads and writes caches, and manages streams and caches of a Felix broker.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], system{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		stdinTerminal: isTerminal(os.Stdin), stdoutTerminal: isTerminal(os.Stdout), stderrTerminal: isTerminal(os.Stderr),
		getenv: os.Getenv, workDir: ".", interrupts: interrupts,
	}))
}

// endings are the signals that ask to end: a terminal that is closed too, unless nohup has it ignored.
func endings() []os.Signal {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// interrupts are the signals that end the context of main, and those after them. Until stop is called, a reader of our output that goes away is an
// error of the write and does not end the process: commands that run must not be left behind.
func interrupts() (<-chan os.Signal, func()) {
	signals, pipe := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, endings()...)
	signal.Notify(pipe, syscall.SIGPIPE)
	return signals, func() {
		signal.Stop(signals)
		signal.Stop(pipe)
	}
}
