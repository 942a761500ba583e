package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/internal/bench"
)

// suiteFlags are the flags of bench suite.
type suiteFlags struct {
	felixd   string
	only     []string
	markdown bool
	into     string
	redis    redisFlags
}

func (b *benchCommands) suiteCommand() *cobra.Command {
	var f suiteFlags
	var rows []string
	for _, r := range suiteRows() {
		rows = append(rows, r.name)
	}
	cmd := &cobra.Command{
		Use:   "suite",
		Short: "Measure everything that docs/benchmarks.md shows",
		Long: `Measure everything that docs/benchmarks.md shows, each figure beside its raw peer, and compare with the targets.

Without --addr or --context-file it starts a felixd of its own, with default settings, on loopback ports and in a folder
that it removes: the program felixd beside this one, or in PATH, or built from the source in this folder. Otherwise the
broker has to have a stream "bench" with 32 shards and a cache "bench", and what is about durable streams is left out:
it needs to know the broker's disk and how it syncs. Beside caches stands a redis-server, where there is one in PATH.

A target that is missed is no failure of the command: figures are for people to judge.`,
		Example: `  felixctl bench suite
  felixctl bench suite --pin --into docs/benchmarks.md
  felixctl bench suite --only publish,fanout --rounds 3`,
		Args: cobra.NoArgs,
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			if err := firstError(b.flags.check(cmd.Flags()), f.redis.check(cmd.Flags())); err != nil {
				return err
			}
			chosen, err := chooseRows(f.only)
			if err != nil {
				return err
			}
			if !b.flags.raw {
				return usagef("--no-raw leaves nothing to compare with; measure one thing with the other commands")
			}
			return b.suite(cmd.Context(), f, chosen)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.felixd, "felixd", "", "the felixd to start; default the one beside this program, in PATH, or built from the source in this folder")
	flags.StringSliceVar(&f.only, "only", nil, "measure only these: "+strings.Join(rows, ", "))
	flags.BoolVar(&f.markdown, "markdown", false, "print tables in Markdown")
	flags.StringVar(&f.into, "into", "", "put the tables in Markdown between the marks of this page")
	f.redis.register(flags)
	fixedValues(cmd, "only", rows...)
	return cmd
}

// chooseRows are the rows with these names, or all.
func chooseRows(names []string) ([]suiteRow, error) {
	all := suiteRows()
	for _, n := range names {
		if !slices.ContainsFunc(all, func(r suiteRow) bool { return r.name == n }) {
			return nil, usagef("--only: there is no %q to measure; see felixctl bench suite --help", n)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(r suiteRow) bool { return !slices.Contains(names, r.name) }), nil
}

// suite finds or starts the broker and measures all rows.
func (b *benchCommands) suite(ctx context.Context, f suiteFlags, rows []suiteRow) error {
	var page []byte
	if f.into != "" { // found out before, and not after, minutes of measuring
		var err error
		if page, err = os.ReadFile(f.into); err != nil {
			return usagef("--into: %v", err)
		}
		if _, err := bench.Splice(page, nil); err != nil {
			return usagef("--into %s: %v", f.into, err)
		}
	}
	study, err := b.study(ctx, f, rows)
	if err != nil {
		return err
	}
	if !f.markdown && f.into == "" {
		return b.print(study)
	}
	var tables bytes.Buffer
	if err := study.WriteMarkdown(&tables); err != nil {
		return err
	}
	if f.into == "" {
		_, err := b.sys.stdout.Write(tables.Bytes())
		return err
	}
	if page, err = bench.Splice(page, tables.Bytes()); err != nil {
		return err
	}
	if err := os.WriteFile(f.into, page, 0o644); err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	b.note("wrote the tables into %s", f.into)
	return nil
}

// study measures all rows: on the broker that is named, or on one of its own for each way to sync.
func (b *benchCommands) study(ctx context.Context, f suiteFlags, rows []suiteRow) (study bench.Study, err error) {
	if b.namesBroker() {
		felixd, err := b.runningBroker(ctx)
		if err != nil {
			return study, err
		}
		if rows = slices.DeleteFunc(rows, func(r suiteRow) bool { return r.fsync != "" }); len(rows) == 0 {
			return study, usagef("--only: durable streams are measured on a felixd that this command starts; leave out --addr and --context-file")
		}
		return b.measureRows(ctx, felixd, "as it runs", nil, f.redis, rows)
	}
	for _, fsync := range []string{fsyncOnCommit, fsyncPeriodic} {
		part, err := b.ownStudy(ctx, f, fsync, slices.DeleteFunc(slices.Clone(rows), func(r suiteRow) bool {
			return r.fsync != fsync && (fsync != fsyncOnCommit || r.fsync != "")
		}))
		if err != nil {
			return study, err
		}
		if len(study.Reports) == 0 {
			study.Environment = part.Environment
		}
		study.Reports = append(study.Reports, part.Reports...)
	}
	return study, nil
}

// ownStudy measures rows on a felixd that it starts for them.
func (b *benchCommands) ownStudy(ctx context.Context, f suiteFlags, fsync string, rows []suiteRow) (study bench.Study, err error) {
	if len(rows) == 0 {
		return study, nil
	}
	ctx, release := signal.NotifyContext(ctx, syscall.SIGPIPE) // whoever reads what is told may go away: felixd is not left behind
	defer release()
	own, err := b.startFelixd(ctx, f.felixd, fsync)
	if err != nil {
		return study, err
	}
	defer func() { err = errors.Join(err, own.stop()) }()
	place := "its own, default settings"
	if fsync == fsyncPeriodic {
		place = "its own, fsync mode periodic"
	}
	if b.flags.pin {
		place += fmt.Sprintf(", on CPU %d, one P", serverCPU)
	}
	return b.measureRows(ctx, own.felixd, place, own, f.redis, rows)
}

// namesBroker reports whether somebody said which broker to use. A dev.json that merely lies here does not.
func (b *benchCommands) namesBroker() bool {
	g := b.app.flags
	return g.addr != "" || g.contextFile != "" || b.sys.getenv(envAddr) != "" || b.sys.getenv(envContextFile) != ""
}

func (b *benchCommands) measureRows(ctx context.Context, felixd bench.Felixd, place string, own *ownFelixd, f redisFlags, rows []suiteRow) (study bench.Study, err error) {
	err = b.withSession(felixd, place, func(s *benchSession) (err error) {
		if own != nil {
			s.env.BrokerBy, s.disk = own.modules, own.disk
		}
		if slices.ContainsFunc(rows, func(r suiteRow) bool { return r.redis }) {
			stop, failed := b.startRedis(ctx, s, f, s.disk)
			if failed != nil {
				return failed
			}
			defer func() { err = errors.Join(err, stop()) }()
		}
		study.Environment = s.env
		for _, row := range rows {
			e, err := row.build(ctx, s)
			if err != nil {
				return fmt.Errorf("prepare %s: %w", row.name, err)
			}
			report, err := b.run(ctx, e)
			if err != nil {
				return err
			}
			study.Reports = append(study.Reports, report)
		}
		return nil
	})
	return study, err
}
