package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/storage/inspect"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// inspectCommand is `felixd inspect`: what is in a folder of logs, and what a start would decide about each.
func inspectCommand(stdout io.Writer) *cobra.Command {
	var o inspect.Options
	var asJSON bool
	verify := segment.VerifyFull.String()
	cmd := &cobra.Command{
		Use:   "inspect DIR",
		Short: "Show the logs in a storage directory, and what a start would decide about each. Changes nothing.",
		Long: "Shows every log in a storage directory: its offsets, files and checks, and whether felixd would open it, open it after cutting\n" +
			"off what a crash left unfinished, or refuse it. Nothing is changed. DIR is the storage directory, or a data directory with\n" +
			"one in it; no felixd may be using it.\n\n" +
			"Exit codes: 0 every log opens, 7 a log would be refused, 4 the directory cannot be read or is in use, 2 usage.",
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&o.Dir, "log", "", "show one log alone, by its directory as it is printed")
	cmd.Flags().StringVar(&verify, "verify", verify, "how much is read: full, sealed or lazy")
	cmd.RunE = func(_ *cobra.Command, args []string) (err error) {
		if o.Verify, err = segment.ParseVerify(verify); err != nil {
			return &exitError{code: exitUsage, err: fmt.Errorf("--verify: %w", err)}
		}
		files, root, err := openLogs(args[0])
		if err != nil {
			return err
		}
		report, err := inspect.Inspect(files, o)
		if err != nil {
			return toolFailed(root, err)
		}
		write := report.WriteText
		if asJSON {
			write = report.WriteJSON
		}
		if err := write(stdout); err != nil {
			return &exitError{code: exitFailure, err: err}
		}
		return judged(report)
	}
	return cmd
}

// judged is nil if a start would open every log.
func judged(report *inspect.Report) error {
	unreadable := 0
	for i := range report.Logs {
		if report.Logs[i].Verdict == inspect.Unreadable {
			unreadable++
		}
	}
	switch refused := report.Refuses(); {
	case refused > 0:
		return &exitError{code: exitDamaged, err: fmt.Errorf("%d of %d logs would be refused", refused, len(report.Logs))}
	case unreadable > 0:
		return &exitError{code: exitDataDir, err: fmt.Errorf("%d of %d logs cannot be read", unreadable, len(report.Logs))}
	}
	return nil
}

// openLogs opens a storage directory that is there; a data directory stands for the one in it.
func openLogs(dir string) (files vfs.FS, root string, err error) {
	root = dir
	if _, err := os.Stat(filepath.Join(dir, segment.LockName)); errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, logFolder, segment.LockName)); err == nil {
			root = filepath.Join(dir, logFolder)
		}
	}
	info, err := os.Stat(root) // NewOS would make it
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory", root)
	}
	if err == nil {
		files, err = vfs.NewOS(root)
	}
	if err != nil {
		return nil, root, &exitError{code: exitDataDir, err: err}
	}
	return files, root, nil
}

// toolFailed finds the exit code for what a tool could not do.
func toolFailed(root string, err error) error {
	var corrupt *segment.CorruptionError
	var version *segment.VersionError
	var log *inspect.NotALogError
	var noID *inspect.NoLogIDError
	switch {
	case errors.As(err, &corrupt), errors.As(err, &version):
		return &exitError{code: exitDamaged, err: fmt.Errorf("%s: %w", root, err)}
	case errors.As(err, &log), errors.As(err, &noID):
		return &exitError{code: exitUsage, err: err}
	}
	return &exitError{code: exitDataDir, err: fmt.Errorf("%s: %w", root, err)}
}
