package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// configCommand is `felixd config`: what `felixd dev` would run with, read in the same way.
func configCommand(environ []string, stdout, stderr io.Writer) *cobra.Command {
	all := settings()
	memory := false
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the settings that `felixd dev` would run with, or the memory that they allow. Starts nothing.",
		Long: "Takes the flags and variables of `felixd dev`, and prints each setting with what it is and where it comes from. A mistake is told as at a\n" +
			"start, with exit code 2. With --memory it prints the budgets of memory that follow from them, and their sum: what a daemon can be\n" +
			"made to hold beside its connections.",
		Args: cobra.NoArgs,
	}
	addFlags(cmd.Flags(), all)
	cmd.Flags().BoolVar(&memory, "memory", false, "print the budgets of memory and their sum, in bytes")
	cmd.RunE = func(*cobra.Command, []string) error {
		config, warnings, err := load(all, cmd.Flags(), environ)
		if err != nil {
			return &exitError{code: exitUsage, err: err}
		}
		for _, w := range warnings {
			fmt.Fprintln(stderr, "felixd:", w)
		}
		show := func(w io.Writer) { showSettings(w, all) }
		if memory {
			show = func(w io.Writer) { showMemory(w, config) }
		}
		table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
		show(table)
		if err := table.Flush(); err != nil {
			return &exitError{code: exitFailure, err: err}
		}
		return nil
	}
	return cmd
}

func showSettings(w io.Writer, all []*setting) {
	for _, s := range all {
		value, from := s.value, s.from
		if value == "" {
			value = `""`
		}
		if from == "" {
			from = "default"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.variable, value, from)
	}
}
