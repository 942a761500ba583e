package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/bench"
	"github.com/felixd/felixd/internal/bench/machine"
	"github.com/felixd/felixd/internal/rawquic"
	build "github.com/felixd/felixd/internal/version"
	"github.com/felixd/felixd/transport"
)

const (
	// serverCPU and generatorCPU are where --pin puts processes.
	serverCPU    = 0
	generatorCPU = 1
	// metricsTime is how long reading the metrics may take on a machine that is busy being measured.
	metricsTime = 10 * time.Second
)

// benchSession is what measurements share: both servers and where they are.
type benchSession struct {
	felixd bench.Felixd
	raw    *bench.Raw // nil with --no-raw
	disk   bench.Disk // of a felixd of its own; "" else
	redis  bench.RedisBeside
	env    bench.Environment
}

// measure runs one experiment and prints its report.
func (b *benchCommands) measure(cmd *cobra.Command, build func(s *benchSession) (bench.Experiment, error)) error {
	return b.measureAll(cmd, func(s *benchSession) ([]bench.Experiment, error) {
		e, err := build(s)
		return []bench.Experiment{e}, err
	})
}

// measureAll runs experiments one after the other and prints their reports.
func (b *benchCommands) measureAll(cmd *cobra.Command, build func(s *benchSession) ([]bench.Experiment, error)) error {
	if err := b.flags.check(cmd.Flags()); err != nil {
		return err
	}
	felixd, err := b.runningBroker(cmd.Context())
	if err != nil {
		return err
	}
	return b.withSession(felixd, "as it runs", func(s *benchSession) error {
		experiments, err := build(s)
		var narrow *bench.StreamsError
		if errors.As(err, &narrow) {
			return usagef("--streams: %v", err)
		}
		if err != nil {
			return err
		}
		study := bench.Study{Environment: s.env}
		for _, e := range experiments {
			report, err := b.run(cmd.Context(), e)
			if err != nil {
				return err
			}
			study.Reports = append(study.Reports, report)
		}
		return b.print(study)
	})
}

// run measures, and says what it is at.
func (b *benchCommands) run(ctx context.Context, e bench.Experiment) (bench.Report, error) {
	return e.Measure(ctx, b.flags.rounds, b.flags.timing(), func(text string) { b.note("%s", text) })
}

// print writes a study as text or as one object.
func (b *benchCommands) print(s bench.Study) error {
	if b.asJSON() {
		return writeJSON(b.sys.stdout, s)
	}
	if err := s.Environment.WriteText(b.sys.stdout); err != nil {
		return err
	}
	for _, r := range s.Reports {
		fmt.Fprintln(b.sys.stdout)
		if err := r.WriteText(b.sys.stdout); err != nil {
			return err
		}
	}
	return nil
}

// withSession starts the raw peer, pins if asked to, and ends both afterwards. place says where the broker runs.
func (b *benchCommands) withSession(felixd bench.Felixd, place string, work func(s *benchSession) error) (err error) {
	s := &benchSession{felixd: felixd}
	pinned := "no: all processes share all CPUs"
	cpu := machine.Any
	if b.flags.pin {
		cpu = serverCPU
		undo, err := machine.Pin(generatorCPU)
		if err != nil {
			return usagef("--pin: %v", err)
		}
		defer func() { err = errors.Join(err, undo()) }()
		pinned = fmt.Sprintf("raw peer on CPU %d and generator on CPU %d, one P each; broker %s", serverCPU, generatorCPU, place)
	}
	if b.flags.raw {
		process, err := b.startPeer(cpu)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, process.Close()) }()
		s.raw = &bench.Raw{Process: process}
	}
	s.env = bench.Environment{
		Machine: machine.Read(), Pinned: pinned, Version: build.Number, Modules: machine.Modules(benchModules()...),
		Broker: strings.Join(felixd.Options.Addrs, ", ") + ", " + place,
	}
	return work(s)
}

func (b *benchCommands) startPeer(cpu int) (*rawquic.Process, error) {
	cmd, err := b.peer()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = b.sys.stderr
	return rawquic.Start(cmd, cpu)
}

// benchModules are those whose versions figures depend on.
func benchModules() []string {
	return []string{"github.com/quic-go/quic-go", "golang.org/x/sys", "github.com/HdrHistogram/hdrhistogram-go"}
}

// runningBroker is the broker of flags, variables and context file.
func (b *benchCommands) runningBroker(ctx context.Context) (bench.Felixd, error) {
	s, err := b.settings()
	if err != nil {
		return bench.Felixd{}, err
	}
	switch {
	case len(s.addrs) == 0:
		return bench.Felixd{}, s.missing("the address of a broker", "addr", envAddr)
	case s.tenant == "":
		return bench.Felixd{}, s.missing("the tenant", "tenant", envTenant)
	case s.token == "":
		return bench.Felixd{}, s.missing("a token for the broker", "token", envToken)
	}
	f := bench.Felixd{
		Options: client.Options{
			Addrs: s.addrs, TenantID: s.tenant, Token: s.token, CAFile: s.caFile, ServerName: s.serverName, OfferALPN: b.app.flags.alpn,
		},
		Namespace: s.namespace,
	}
	f.Meter, err = b.metrics(ctx, s)
	return f, err
}

// metrics reads the broker's metrics once and returns what reads them again: at --metrics-url, or where the context file says of the
// same broker. It is nil, and a report says what is not known, when nobody says where, or when the context file says it in vain.
func (b *benchCommands) metrics(ctx context.Context, s *settings) (bench.Meter, error) {
	url := b.flags.metricsURL
	if url == "" {
		var file struct {
			HTTP       string `json:"http"`
			ClientAddr string `json:"client_addr"`
		}
		text, err := os.ReadFile(b.contextPath())
		if err != nil || json.Unmarshal(text, &file) != nil || file.HTTP == "" || file.ClientAddr != s.addrs[0] {
			return nil, nil // settings has judged the file
		}
		url = file.HTTP + "/metrics"
	}
	config, err := metricsTLS(s.caFile)
	if err != nil {
		return nil, err
	}
	meter := bench.MetricsMeter{URL: url, HTTP: &http.Client{Timeout: metricsTime, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}}
	_, err = meter.Usage(ctx)
	if err != nil && b.flags.metricsURL == "" {
		b.note("%v", err)
		return nil, nil
	}
	return meter, err
}

// contextPath is the context file that settings read, if there is one.
func (b *benchCommands) contextPath() string {
	for _, path := range [...]string{b.app.flags.contextFile, b.sys.getenv(envContextFile)} {
		if path != "" {
			return path
		}
	}
	return filepath.Join(b.sys.workDir, filepath.FromSlash(devFile))
}

func metricsTLS(caFile string) (*tls.Config, error) {
	var authorities []byte
	if caFile != "" {
		var err error
		if authorities, err = os.ReadFile(caFile); err != nil {
			return nil, usagef("read CA file: %v", err)
		}
	}
	return transport.ClientTLS(transport.ClientTLSOptions{CAPEM: authorities})
}
