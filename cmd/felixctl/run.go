package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// app is one run of felixctl.
type app struct {
	sys   system
	flags globalFlags
}

// ranError marks errors that come from doing the work. Everything else that cobra returns is a mistake on the command
// line.
type ranError struct{ err error }

func (e *ranError) Error() string { return e.err.Error() }
func (e *ranError) Unwrap() error { return e.err }

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, sys system) int {
	a := &app{sys: sys}
	root := a.rootCommand()
	root.SetArgs(append([]string{}, args...)) // none at all would be those of the process
	cmd, err := root.ExecuteContextC(ctx)
	var ran *ranError
	if err != nil && !errors.As(err, &ran) {
		err = usagef("%v\nsee %s --help", err, cmd.CommandPath())
	}
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted: %w", err)
	}
	return a.report(err)
}

// report prints an error and returns its exit code.
func (a *app) report(err error) int {
	code := exitCode(err)
	if a.flags.json {
		// When standard error is gone too, the exit code says what can still be said.
		_ = writeJSON(a.sys.stderr, struct {
			Error string `json:"error"`
			Exit  int    `json:"exit"`
		}{err.Error(), code})
		return code
	}
	fmt.Fprintf(a.sys.stderr, "felixctl: %v\n", err)
	return code
}

// does wraps what a command does.
func does(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := f(cmd, args); err != nil {
			return &ranError{err}
		}
		return nil
	}
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "felixctl",
		Short: "Publish, subscribe, read, use caches and manage streams of a Felix broker",
		Long: `felixctl talks to a Felix broker and its control plane.

It finds ./felix-data/dev.json of a development broker started in this folder by itself; --context-file names
another one. Every setting can also come from a flag or a variable: flag before variable before file.

Results are text on a terminal and JSON elsewhere; --json asks for JSON everywhere. Payloads and cache values are
written byte for byte when the output is not a terminal.

Exit codes: 0 success, 1 other failure, 2 usage, 3 unreachable, 4 refused, 5 not found.`,
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.sys.stdin)
	root.SetOut(a.sys.stdout)
	root.SetErr(a.sys.stderr)
	a.flags.register(root.PersistentFlags())
	root.AddCommand(a.pubCommand(), a.subCommand(), a.readCommand(), a.commitCommand(), a.stateCommand(), a.cacheCommand(), a.counterCommand(),
		a.streamCommand(), a.groupCommand(), a.faultCommand(), a.benchCommand(), a.versionCommand())
	tellArguments(root)
	return root
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		names := make([]string, 0, len(cmd.Commands()))
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		return fmt.Errorf("%s needs one of its commands: %s", cmd.CommandPath(), strings.Join(names, ", "))
	}}
	g.AddCommand(commands...)
	return g
}
