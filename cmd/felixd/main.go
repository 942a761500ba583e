// Command felixd is the daemon: event streams, work queues and a cache over QUIC.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/internal/version"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr, signals))
}

// run is main with everything it touches as arguments. It returns the exit code.
func run(args, environ []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	// The QUIC library warns on its own about socket buffers that the transport sizes and reports itself.
	_ = os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	root := &cobra.Command{
		Use:               "felixd",
		Short:             "Event streams, work queues and a cache over QUIC, from one log.",
		Long:              "felixd serves event streams, work queues and a key-value cache as three readings of one append-only log.\n\n" + exitCodeHelp(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetArgs(append([]string{}, args...)) // none at all would be those of the process
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(devCommand(environ, stdout, stderr, signals), configCommand(environ, stdout, stderr), inspectCommand(stdout), repairCommand(stdout), laterCommand("broker"), laterCommand("controlplane"), versionCommand(stdout))
	cmd, err := root.ExecuteContextC(context.Background())
	if err != nil {
		var ended *exitError
		if !errors.As(err, &ended) { // the command line was not understood
			err = fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
		}
		fmt.Fprintln(stderr, "felixd:", err)
		return exitCode(err)
	}
	return exitOK
}

// laterCommand is a command that exists and cannot be started yet: the daemon runs as one process only.
func laterCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: "Not available yet: run everything in one process with `felixd dev`.",
		Args:  cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return &exitError{code: exitUsage, err: fmt.Errorf("`felixd %s` comes with clusters and is not available in this version; `felixd dev` runs a broker and a control plane in one process", name)}
		},
	}
}

func versionCommand(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of felixd and of the protocol it speaks.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(stdout, version.String("felixd"))
			return err
		},
	}
}
