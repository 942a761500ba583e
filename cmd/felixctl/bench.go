package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/felixd/felixd/internal/bench"
	"github.com/felixd/felixd/internal/rawquic"
)

// Bounds of what may be asked for: beyond them a figure says nothing, or the generator is what is measured.
const (
	benchPayloadMax  = 8 << 20 // half of what a frame takes
	benchBatchMax    = 10_000
	benchInFlightMax = 256 // per stream: what a broker grants
	benchStreamsMax  = 256
	benchConnsMax    = 32
	benchCallersMax  = 1024
	benchFanoutMax   = 256
	benchRoundsMax   = 100
	benchRateMax     = 1_000_000
)

// benchCommands are the commands below bench. peer is how this program starts itself as a raw peer.
type benchCommands struct {
	*app
	peer  func() (*exec.Cmd, error)
	flags benchFlags
}

// benchFlags are those of all measurements.
type benchFlags struct {
	duration, warmUp time.Duration
	rounds           int
	raw, noRaw       bool
	pin              bool
	metricsURL       string
}

func (a *app) benchCommand() *cobra.Command {
	return (&benchCommands{app: a, peer: selfAsPeer}).command()
}

// selfAsPeer is this program as a raw peer.
func selfAsPeer() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return exec.Command(self, "bench", "raw-peer"), nil
}

func (b *benchCommands) command() *cobra.Command {
	c := group("bench", "Measure a broker, and a raw QUIC peer beside it",
		b.pubCommand(), b.subCommand(), b.fanoutCommand(), b.relayCommand(), b.latencyCommand(), b.queueCommand(), b.cacheCommand(), b.suiteCommand(), b.rawPeerCommand())
	c.Long = `Measure a broker: how fast it takes and delivers records and answers requests, and what a raw QUIC peer with the same
sockets, settings, connections, streams and bytes reaches beside it. The raw peer is this program in a process of its
own. Both are measured in turn, round by round, and the ratio of each round is reported.

A closed loop sends again when an answer came: its rate is the highest there is, and its latency is that of a full
pipe. An open loop sends at a fixed rate, and its latency counts from when a request was due.

A measurement publishes to the stream, and writes to the cache, that it is given. Use ones that nobody else uses:
  felixctl stream create bench --shards 32
  felixctl cache create bench`
	b.flags.register(c.PersistentFlags())
	return c
}

func (f *benchFlags) register(set *pflag.FlagSet) {
	set.DurationVar(&f.duration, "duration", 3*time.Second, "what is measured of each side in each round")
	set.DurationVar(&f.warmUp, "warm-up", time.Second, "what is run before and not counted")
	set.IntVar(&f.rounds, "rounds", 5, "how often each side is measured, in turn")
	set.BoolVar(&f.raw, "raw", true, "measure a raw QUIC peer too")
	set.BoolVar(&f.noRaw, "no-raw", false, "measure the broker alone")
	set.BoolVar(&f.pin, "pin", false, "keep servers on CPU 0 and this program on CPU 1, one P each (Linux); a broker that runs already is to be started so:\nGOMAXPROCS=1 taskset -c 0 felixd ...")
	set.StringVar(&f.metricsURL, "metrics-url", "", "where the broker serves its metrics; default that of the context file")
}

// check judges the flags.
func (f *benchFlags) check(set *pflag.FlagSet) error {
	switch {
	case f.duration < 50*time.Millisecond || f.duration > time.Hour:
		return usagef("--duration is %v; use 50ms to 1h", f.duration)
	case f.warmUp < 0 || f.warmUp > time.Hour:
		return usagef("--warm-up is %v; use 0 to 1h", f.warmUp)
	case set.Changed("raw") && f.raw && f.noRaw:
		return usagef("--raw and --no-raw are given; use one of them")
	}
	f.raw = f.raw && !f.noRaw
	return inRange("rounds", f.rounds, 1, benchRoundsMax)
}

func (f *benchFlags) timing() bench.Timing {
	return bench.Timing{WarmUp: f.warmUp, Duration: f.duration}
}

// inRange judges a number.
func inRange(flag string, n, low, high int) error {
	if n < low || n > high {
		return usagef("--%s is %d; use %d to %d", flag, n, low, high)
	}
	return nil
}

// firstError is the first mistake of several.
func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// rawPeerCommand is the raw peer itself, which this program starts. It ends with its standard input.
func (b *benchCommands) rawPeerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "raw-peer", Short: "Be a raw QUIC peer, told what to do on standard input", Args: cobra.NoArgs, Hidden: true,
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			return rawquic.Run(cmd.Context(), b.sys.stdin, b.sys.stdout, rawquic.Options{})
		}),
	}
}
