package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/felixd/felixd/internal/bench"
)

// durableFlags are those of measurements of durable streams.
type durableFlags struct {
	durable bool
	disk    string
}

func (f *durableFlags) register(set *pflag.FlagSet, what string) {
	set.BoolVar(&f.durable, "durable", false, what)
	set.StringVar(&f.disk, "disk", "", "with --durable: folder on the disk of the broker's logs, for plain writes; default that of the context file")
}

// check refuses what does not go together with --durable, and --disk without it.
func (f *durableFlags) check(set *pflag.FlagSet, others ...string) error {
	if !f.durable {
		if set.Changed("disk") {
			return usagef("--disk is for --durable")
		}
		return nil
	}
	for _, name := range others {
		if set.Changed(name) {
			return usagef("--%s says nothing with --durable: its producers publish single records and wait for each", name)
		}
	}
	return nil
}

// diskFor is the folder to write to.
func (b *benchCommands) diskFor(f durableFlags) (bench.Disk, error) {
	folder := f.disk
	if folder == "" {
		folder = filepath.Dir(b.contextPath())
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", usagef("--disk: %s is no folder here; name one on the disk of the broker's logs", folder)
	}
	return bench.Disk(folder), nil
}

func (b *benchCommands) measureDurable(cmd *cobra.Command, f durableFlags, spec bench.DurableSpec) error {
	disk, err := b.diskFor(f)
	if err != nil {
		return err
	}
	return b.measure(cmd, func(s *benchSession) (bench.Experiment, error) {
		return bench.DurableExperiment(s.felixd, s.raw, disk, spec), nil
	})
}
