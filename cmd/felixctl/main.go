// Command felixctl publishes, subscribes, reads and writes caches, and manages streams and caches of a Felix broker.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], system{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		stdinTerminal: isTerminal(os.Stdin), stdoutTerminal: isTerminal(os.Stdout), stderrTerminal: isTerminal(os.Stderr),
		getenv: os.Getenv, workDir: ".", interrupts: interrupts,
	}))
}

// interrupts are the signals that end the context of main, and those after them.
func interrupts() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals, func() { signal.Stop(signals) }
}
