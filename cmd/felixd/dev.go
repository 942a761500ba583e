package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// devCommand is `felixd dev`: a broker and a control plane in one process, ready for use.
func devCommand(environ []string, stdout, stderr io.Writer, signals <-chan os.Signal) *cobra.Command {
	all := settings()
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything in one process, with its own certificates and tokens.",
		Long: "Runs a broker and a control plane in one process, for development and small installations.\n\n" +
			"It makes an authority, a client token and an admin token, and writes all that a client needs to dev.json in its data\n" +
			"directory; felixctl finds that by itself. Streams and caches that were created are there again after a restart: durable\n" +
			"streams and caches with what is in them, which is kept in files; ephemeral streams, and caches that were made to be\n" +
			"in memory, without.\n\n" +
			"Every flag has a variable, named behind it; the flag wins. SIGTERM or Ctrl-C drains and stops; a second one stops at\n" +
			"once.\n\n" + exitCodeHelp(),
		Args: cobra.NoArgs,
	}
	addFlags(cmd.Flags(), all)
	cmd.RunE = func(*cobra.Command, []string) error {
		config, warnings, err := load(all, cmd.Flags(), environ)
		if err != nil {
			return &exitError{code: exitUsage, err: err}
		}
		logger := newLogger(stderr, config.LogLevel)
		for _, w := range warnings {
			logger.Warn(w)
		}
		d := &daemon{config: config, logger: logger, stdout: stdout, began: time.Now(), signals: signals}
		return d.run()
	}
	return cmd
}

func newLogger(w io.Writer, level string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo // cannot be: the level was checked
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l}))
}

// greet prints where the daemon listens and what to try next. The last line says that it is ready.
func (d *daemon) greet() {
	fmt.Fprintf(d.stdout, "felixd dev\n")
	fmt.Fprintf(d.stdout, "  clients      %s (UDP)\n", d.dev.ClientAddr)
	fmt.Fprintf(d.stdout, "  api          %s\n", d.dev.ControlPlane)
	fmt.Fprintf(d.stdout, "  health       %s/ready, /live, /metrics\n", d.dev.HTTP)
	fmt.Fprintf(d.stdout, "  credentials  %s\n", d.data.file(devFile))
	if d.faults != nil {
		fmt.Fprintf(d.stdout, "  FAULT DOOR   %s: whoever may write to it can break this daemon\n", d.data.file(faultSocket))
	}
	fmt.Fprintf(d.stdout, "  storage      %s\n", d.storage.where())
	fmt.Fprintf(d.stdout, "  tenant %s, namespace %s, streams %s, caches %s to begin with; a restart empties %s\n\n",
		devTenant, devNamespace, join(devStreams[:]), join(devCaches[:]), d.storage.emptied())
	fmt.Fprintf(d.stdout, "try next, in a second terminal:\n")
	for _, line := range [...]string{"pub orders hello", "sub orders --from earliest --count 1", "cache put users alice 42", "stream create ledger --durable"} {
		fmt.Fprintf(d.stdout, "  go run ./cmd/felixctl %s%s\n", line, d.contextFlag())
	}
	fmt.Fprintf(d.stdout, "\nready in %d ms\n", time.Since(d.began).Milliseconds())
}

// contextFlag is what felixctl must be told when it would not find dev.json by itself.
func (d *daemon) contextFlag() string {
	if d.config.DataDir == DefaultConfig().DataDir {
		return ""
	}
	return " --context-file " + d.data.file(devFile)
}

func join(names []string) string {
	out := names[0]
	for _, n := range names[1:] {
		out += " " + n
	}
	return out
}
