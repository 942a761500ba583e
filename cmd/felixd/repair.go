package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/storage/inspect"
	"github.com/felixd/felixd/wire/id"
)

// repairFlags are what an operator may say to `felixd repair`.
type repairFlags struct {
	cutTail, cutAtDamage, acceptEmpty bool
	logID                             string
	base, generation                  uint64
	yes, asJSON                       bool
}

// repairCommand is `felixd repair`: the one way to give up what a log cannot give back.
func repairCommand(stdout io.Writer) *cobra.Command {
	var f repairFlags
	cmd := &cobra.Command{
		Use:   "repair DIR LOG",
		Short: "Cut a damaged log, or begin it again, keeping aside what is taken away. Does nothing without --yes.",
		Long: "Carries out one decision about one log that felixd refuses to open. Without --yes it says what would be done, and what would be\n" +
			"lost. With it, whatever is taken away is first copied to `salvaged` in the storage directory. DIR is the storage directory,\n" +
			"or a data directory with one in it; LOG is the directory of the log as `felixd inspect` or the refusal names it; no felixd may\n" +
			"be using it.\n\n" +
			"  --cut-tail       what is lost is the end of the log: a damage after which nothing whole follows\n" +
			"  --cut-at-damage  everything from the first damage on is given up\n" +
			"  --accept-empty   the whole log is given up, or is gone: an empty one takes its place under the same identity\n\n" +
			"Exit codes: 0 done, or shown; 7 the log is damaged in a way that the decision does not cover; 4 the directory cannot be used or\n" +
			"is in use; 2 usage.",
		Args: cobra.ExactArgs(2),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.cutTail, "cut-tail", false, "cut the damaged end off")
	flags.BoolVar(&f.cutAtDamage, "cut-at-damage", false, "cut at the first damage, wherever it is")
	flags.BoolVar(&f.acceptEmpty, "accept-empty", false, "begin again with an empty log")
	flags.StringVar(&f.logID, "log-id", "", "with --accept-empty: the identity that log_missing names, 32 hex digits; not needed where the log still says it")
	flags.Uint64Var(&f.base, "from-offset", 0, "with --accept-empty: offset of the next record; choose one past what readers have seen")
	flags.Uint64Var(&f.generation, "generation", 1, "with --accept-empty: generation under which the log is made")
	flags.BoolVar(&f.yes, "yes", false, "do it")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	cmd.MarkFlagsMutuallyExclusive("cut-tail", "cut-at-damage", "accept-empty")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := f.options(args[1], cmd.Flags().Changed)
		if err != nil {
			return &exitError{code: exitUsage, err: err}
		}
		files, root, err := openLogs(args[0])
		if err != nil {
			return err
		}
		outcome, err := inspect.Repair(files, o)
		if err != nil {
			return toolFailed(root, err)
		}
		if err := f.print(stdout, outcome); err != nil {
			return &exitError{code: exitFailure, err: err}
		}
		return nil
	}
	return cmd
}

// options puts what was said together; given tells which flags were.
func (f *repairFlags) options(log string, given func(string) bool) (o inspect.RepairOptions, err error) {
	o = inspect.RepairOptions{Dir: log, Yes: f.yes, NowMicros: uint64(time.Now().UnixMicro()), Holder: fmt.Sprintf("felixd repair, pid %d", os.Getpid())}
	switch {
	case f.cutTail:
		o.Action = inspect.CutTail
	case f.cutAtDamage:
		o.Action = inspect.CutAtDamage
	case f.acceptEmpty:
		o.Action = inspect.AcceptEmpty
	default:
		return o, errors.New("say what to do: --cut-tail, --cut-at-damage or --accept-empty")
	}
	for _, name := range [...]string{"log-id", "from-offset", "generation"} {
		if given(name) && !f.acceptEmpty {
			return o, fmt.Errorf("--%s belongs to --accept-empty", name)
		}
	}
	if f.acceptEmpty {
		o.Base, o.Generation = id.Offset(f.base), id.Generation(f.generation)
		if o.Log, err = parseLogID(f.logID); err != nil {
			return o, fmt.Errorf("--log-id: %w", err)
		}
	}
	return o, nil
}

// parseLogID reads an identity as errors print it; nothing is zero.
func parseLogID(text string) (l id.LogID, err error) {
	if text == "" {
		return l, nil
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(l) {
		return l, fmt.Errorf("%.64q is not %d hex digits", text, 2*len(l))
	}
	copy(l[:], b)
	if l.IsZero() {
		return l, errors.New("no log has the identity zero")
	}
	return l, nil
}

func (f *repairFlags) print(w io.Writer, o *inspect.Outcome) error {
	if f.asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(o)
	}
	said := "would be done; say --yes to do it"
	switch {
	case len(o.Steps) == 0:
		said = "nothing to do, felixd opens this log"
	case o.Done:
		said = "done"
	}
	_, err := fmt.Fprintf(w, "%s, %s: %s\n", o.Dir, o.Action, said)
	for _, step := range o.Steps {
		_, e := fmt.Fprintf(w, "  %s\n", step)
		err = errors.Join(err, e)
	}
	if o.Salvaged != "" {
		_, e := fmt.Fprintf(w, "  what was taken away is in %s\n", o.Salvaged)
		err = errors.Join(err, e)
	}
	_, e := fmt.Fprintf(w, "  the log has offsets %d to %d\n", o.Base, o.End)
	return errors.Join(err, e)
}
