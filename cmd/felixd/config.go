package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/cmd/felixd/settingsfile"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/internal/stages"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// Config is everything `felixd dev` can be told. DefaultConfig has the defaults; load fills it from flags and variables.
type Config struct {
	DataDir string
	Listen  string // UDP
	HTTP    string
	API     string

	LogLevel     string
	DrainTimeout time.Duration
	Executors    int // for each core shard, if there are any
	CoreShards   int
	Limits       node.Limits

	TimingEvery    int
	DisableTimings bool

	MaxConnections int
	MaxPerIP       int
	AuthTimeout    time.Duration
	Windows        transport.Windows
	Offload        transport.Offload
	RequireALPN    bool
	CipherSuites   []uint16
	FaultDoor      bool

	Durable durableOptions
}

// DefaultConfig is what felixd runs with when nothing is set.
func DefaultConfig() Config {
	return Config{
		DataDir: "./felix-data", Listen: "127.0.0.1:5000", HTTP: "127.0.0.1:8080", API: "127.0.0.1:8443",
		LogLevel: "info", DrainTimeout: 25 * time.Second, Executors: actors.ExecutorsDefault, Limits: node.DefaultLimits(), TimingEvery: stages.SampleEvery,
		MaxConnections: transport.DefaultMaxConnections, MaxPerIP: transport.DefaultMaxPerIP,
		AuthTimeout: wire.AuthTimeoutMillis * time.Millisecond, Windows: transport.DefaultServerWindows(),
		Durable: defaultDurable(),
	}
}

// load reads flags, then the file of settings if there is one, then variables, then defaults. All mistakes come back at once, a line each,
// every one naming the flag, the line or the variable it is about. warnings are about variables that nothing reads.
func load(all []*setting, flags *pflag.FlagSet, environ []string) (c Config, warnings []string, err error) {
	c = DefaultConfig()
	env := map[string]string{}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(k, "FELIX_") {
			env[k] = v
		}
	}
	var wrong []error
	file, path, err := fromFile(all, flags, env)
	if err != nil {
		wrong = append(wrong, err)
	}
	given := map[string]bool{}
	for _, s := range all {
		where, value := s.variable, s.value
		given[s.flag] = true
		if flags.Changed(s.flag) {
			where = "--" + s.flag
		} else if v, ok := file[s.key()]; ok {
			where, value = fmt.Sprintf("%s:%d: %s", path, v.Line, s.key()), v.Text
		} else if v, ok := env[s.variable]; ok {
			value = v
		} else if v, ok := env[s.alias]; ok {
			where, value = s.alias, v
		} else {
			given[s.flag] = false
		}
		s.value = value
		if given[s.flag] {
			s.from = where
		}
		if err := s.parse(value, &c); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", where, err))
		}
	}
	c.implyPeriodic(func(flag string) bool { return given[flag] })
	for _, s := range all {
		if s.flag == "durable-fsync-mode" {
			s.value = c.Durable.Fsync.String() // what was implied is in force
		}
	}
	if d := &c.Limits.Delivery; d.PerConnection == 0 {
		d.PerConnection = 4 * d.PerIdentity
	}
	if len(wrong) == 0 { // what does not parse has no value to compare
		wrong = c.check()
	}
	warnings = unread(all, environ)
	if given["durable-fsync-interval-ms"] && c.Durable.Fsync != disklog.Periodic {
		warnings = append(warnings, fmt.Sprintf("--durable-fsync-interval-ms (FELIX_DURABLE_FSYNC_INTERVAL_MS) has no effect in mode %s", c.Durable.Fsync))
	}
	return c, warnings, errors.Join(wrong...)
}

// executors is how many goroutines run shards.
func (c Config) executors() int { return c.Executors * max(1, c.CoreShards) }

// executorsMost is as many as actors take; more would only add contention.
const executorsMost = 64

// fromFile reads the file of settings that --config or its variable names; without either there is none.
func fromFile(all []*setting, flags *pflag.FlagSet, env map[string]string) (values map[string]settingsfile.Value, path string, err error) {
	path = env[configVariable]
	if f := flags.Lookup(configFlag); f != nil && f.Changed {
		path = f.Value.String()
	}
	if path == "" {
		return nil, "", nil
	}
	values, err = readConfigFile(path, all)
	return values, path, err
}

// timingEvery is one request in how many is timed; 0 is none.
func (c Config) timingEvery() int {
	if c.DisableTimings {
		return 0
	}
	return c.TimingEvery
}

// check looks at what only makes sense together.
func (c Config) check() (wrong []error) {
	if c.HTTP == c.API && !strings.HasSuffix(c.HTTP, ":0") {
		wrong = append(wrong, fmt.Errorf("--http: %s is the address of --api too; give each its own", c.HTTP))
	}
	if c.executors() > executorsMost {
		wrong = append(wrong, fmt.Errorf("--core-shards: %d of %d executors each are more than %d (--executors)", c.CoreShards, c.Executors, executorsMost))
	}
	if _, err := c.Windows.WithMax(0, 0); err != nil {
		wrong = append(wrong, fmt.Errorf("--stream-recv-window: %w", err))
	}
	if c.Limits.PublishConnBytes > c.Limits.PublishBytes {
		wrong = append(wrong, fmt.Errorf("--publish-conn-inflight-bytes: %d is more than the whole node may hold (--publish-inflight-bytes %d)", c.Limits.PublishConnBytes, c.Limits.PublishBytes))
	}
	if c.Limits.RingBytes > c.Limits.TailBytes {
		wrong = append(wrong, fmt.Errorf("--ephemeral-shard-bytes: %d is more than the whole node may hold (--ephemeral-memory-bytes %d)", c.Limits.RingBytes, c.Limits.TailBytes))
	}
	return append(append(wrong, c.checkDelivery()...), c.checkDurable()...)
}

// checkDelivery looks at what only makes sense together for subscribers.
func (c Config) checkDelivery() (wrong []error) {
	d := &c.Limits.Delivery
	if d.Capacity > d.CapacityMax {
		wrong = append(wrong, fmt.Errorf("--subscriber-queue-capacity: %d is more than a subscriber may ask for (--subscriber-queue-capacity-max %d)", d.Capacity, d.CapacityMax))
	}
	if c.Limits.WindowBytes > c.Limits.ReaderBytes {
		wrong = append(wrong, fmt.Errorf("--subscriber-queue-max-bytes: %d is more than the whole node may keep for subscribers (--subscriber-memory-bytes %d)", c.Limits.WindowBytes, c.Limits.ReaderBytes))
	}
	if d.MaxBytes > wire.MaxPayload {
		wrong = append(wrong, fmt.Errorf("--event-batch-max-bytes: %d is more than a frame may have (%d)", d.MaxBytes, wire.MaxPayload))
	}
	if d.PerIdentity > d.PerConnection {
		wrong = append(wrong, fmt.Errorf("--max-subscriptions-per-conn: %d is more than the whole connection may have (--max-subscriptions-per-conn-total %d)", d.PerIdentity, d.PerConnection))
	}
	return wrong
}

// clientVariables are read by clients and not by the daemon; they may be in its environment too.
var clientVariables = [...]string{
	"FELIX_INITIAL_MTU", "FELIX_CONTEXT", "FELIX_CONTEXT_FILE", "FELIX_ADDR", "FELIX_BROKERS", "FELIX_NAMESPACE", "FELIX_AUTH_TENANT", "FELIX_AUTH_TOKEN",
	"FELIX_AUTH_TOKEN_FILE", "FELIX_TOKEN", "FELIX_CA_FILE", "FELIX_SERVER_NAME", "FELIX_CONTROLPLANE_URL", "FELIX_CONTROLPLANE_TOKEN",
	"FELIX_CONTROLPLANE_TOKEN_FILE", "FELIX_CONTROLPLANE_CA", "FELIX_FAULT_SOCKET", "FELIX_EFFORT", "FELIX_CONFORMANCE_VENV",
	"FELIX_CONFORMANCE_ROUNDS", "FELIX_CONFORMANCE_OPERATIONS", "FELIX_CONFORMANCE_KILLS", "FELIX_CONFORMANCE_FELIXD", "FELIX_CONFORMANCE_QUEUE_RECORDS",
}

// unread names FELIX_ variables that nothing reads, with the nearest name that something does: a misspelled variable would
// otherwise be silently without effect.
func unread(all []*setting, environ []string) (warnings []string) {
	for _, kv := range environ {
		k, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(k, "FELIX_") {
			continue
		}
		known, best, distance := k == configVariable, "", 4
		for _, s := range all {
			known = known || s.variable == k || s.alias == k
			if d := editDistance(s.variable, k); d < distance {
				best, distance = s.variable, d
			}
		}
		for _, v := range clientVariables {
			known = known || v == k
		}
		switch {
		case known:
		case best != "":
			warnings = append(warnings, fmt.Sprintf("%s is set and nothing reads it; did you mean %s?", k, best))
		default:
			warnings = append(warnings, k+" is set and nothing reads it")
		}
	}
	return warnings
}

// editDistance is how many letters must be added, dropped or changed to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		left, diagonal := i, i-1
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next := min(row[j]+1, left+1, diagonal+cost)
			diagonal, row[j-1] = row[j], left
			left = next
		}
		row[len(b)] = left
	}
	return row[len(b)]
}
