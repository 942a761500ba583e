package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// setting is one thing an operator can turn: a flag, a variable and a default. The flag wins over the variable.
type setting struct {
	flag, variable, help string
	alias                string // another name of the variable, read when that is not set; "" is none
	unit                 string // what the help shows for the value; "" is a word
	value                string // the default, then what is in force
	from                 string // the flag or variable that set it; "" is the default
	parse                func(text string, c *Config) error
}

// settings lists everything that can be set for `felixd dev`, in the order of the help.
func settings() []*setting {
	d := DefaultConfig()
	list := []*setting{
		{flag: "data-dir", unit: "folder", variable: "FELIX_DATA_DIR", value: d.DataDir, help: "folder for certificates, keys, dev.json, the catalog and, unless set apart, the logs of durable streams and caches", parse: text(func(c *Config) *string { return &c.DataDir })},
		{flag: "listen", unit: "host:port", variable: "FELIX_QUIC_BIND", value: d.Listen, help: "address for clients (UDP)", parse: address(func(c *Config) *string { return &c.Listen })},
		{flag: "http", unit: "host:port", variable: "FELIX_BROKER_METRICS_BIND", value: d.HTTP, help: "address for /live, /ready and /metrics; plain HTTP on loopback, TLS elsewhere", parse: address(func(c *Config) *string { return &c.HTTP })},
		{flag: "api", unit: "host:port", variable: "FELIX_CONTROLPLANE_BIND", value: d.API, help: "address of the control-plane API (TLS)", parse: address(func(c *Config) *string { return &c.API })},
		{flag: "log-level", unit: "level", variable: "FELIX_LOG_LEVEL", value: d.LogLevel, help: "debug, info, warn or error", parse: oneOf(func(c *Config) *string { return &c.LogLevel }, "debug", "info", "warn", "error")},
		{flag: "drain-timeout-ms", unit: "ms", variable: "FELIX_SHUTDOWN_DRAIN_TIMEOUT_MS", value: ms(d.DrainTimeout), help: "longest time to finish open requests after SIGTERM", parse: millis(func(c *Config) *time.Duration { return &c.DrainTimeout }, 0)},
		{flag: "executors", unit: "n", variable: "FELIX_BROKER_PUB_WORKERS_PER_CONN", value: fmt.Sprint(d.Executors), help: "goroutines that run shards, fairly by tenant; more than there are busy shards only adds contention", parse: count(func(c *Config) *int { return &c.Executors }, 1, 64)},
		{flag: "core-shards", unit: "n", variable: "FELIX_CORE_SHARDS", value: "0", help: "if above 0, --executors counts for each of so many", parse: count(func(c *Config) *int { return &c.CoreShards }, 0, 64)},
		{flag: "publish-queue-depth", unit: "n", variable: "FELIX_BROKER_PUB_QUEUE_DEPTH", value: fmt.Sprint(d.Limits.TenantSlots), help: "requests that a tenant may always have under way; all tenants together may have as many for each executor", parse: count(func(c *Config) *int { return &c.Limits.TenantSlots }, 1, 1<<16)},
		{flag: "publish-window", unit: "n", variable: "FELIX_BROKER_PUBLISH_WINDOW", value: fmt.Sprint(d.Limits.PublishWindow), help: "requests that may be open on one stream", parse: count(func(c *Config) *int { return &c.Limits.PublishWindow }, 1, 4096)},
		{flag: "max-frame-bytes", unit: "bytes", variable: "FELIX_MAX_FRAME_BYTES", value: fmt.Sprint(d.Limits.FrameBytes), help: "longest payload of a frame from a client that is signed in; a longer one ends its stream unread", parse: count(func(c *Config) *int { return &c.Limits.FrameBytes }, wire.MaxPreauthPayload, wire.MaxPayload)},
		{flag: "publish-inflight-bytes", unit: "bytes", variable: "FELIX_BROKER_PUBLISH_INFLIGHT_BYTES", value: fmt.Sprint(d.Limits.PublishBytes), help: "bytes of requests without an outcome, whole node", parse: count(func(c *Config) *int { return &c.Limits.PublishBytes }, 1<<20, 1<<40)},
		{flag: "publish-conn-inflight-bytes", unit: "bytes", variable: "FELIX_BROKER_PUBLISH_CONN_INFLIGHT_BYTES", value: fmt.Sprint(d.Limits.PublishConnBytes), help: "the same for one connection", parse: count(func(c *Config) *int { return &c.Limits.PublishConnBytes }, 1<<16, 1<<40)},
		{flag: "publish-queue-wait-ms", unit: "ms", variable: "FELIX_PUBLISH_QUEUE_WAIT_MS", value: ms(d.Limits.QueueWait), help: "time an acknowledged publish or a cache write that finds no room waits for it, before it is refused with overloaded; its stream is not read meanwhile", parse: millis(func(c *Config) *time.Duration { return &c.Limits.QueueWait }, 0)},
		{flag: "publish-ingress-wait", unit: "bool", variable: "FELIX_PUB_INGRESS_WAIT", value: "false", help: "publishes that nobody acknowledges wait for room as long as it takes, instead of being dropped and counted", parse: boolean(func(c *Config) *bool { return &c.Limits.IngressWait })},
		{flag: "answer-memory-bytes", unit: "bytes", variable: "FELIX_ANSWER_MEMORY_BYTES", value: fmt.Sprint(d.Limits.AnswerBytes), help: "answers kept for clients that do not read them, whole node; at half of it those are not read either, at it the worst of their streams are ended", parse: count(func(c *Config) *int { return &c.Limits.AnswerBytes }, 1<<20, 1<<40)},
		{flag: "ephemeral-memory-bytes", unit: "bytes", variable: "FELIX_EPHEMERAL_MEMORY_BYTES", value: fmt.Sprint(d.Limits.TailBytes), help: "records of ephemeral streams kept in memory, whole node", parse: bytes64(func(c *Config) *int64 { return &c.Limits.TailBytes })},
		{flag: "ephemeral-shard-bytes", unit: "bytes", variable: "FELIX_EPHEMERAL_SHARD_BYTES", value: fmt.Sprint(d.Limits.RingBytes), help: "the same for one shard", parse: bytes64(func(c *Config) *int64 { return &c.Limits.RingBytes })},
		{flag: "ephemeral-shard-batches", unit: "n", variable: "FELIX_EPHEMERAL_SHARD_BATCHES", value: fmt.Sprint(d.Limits.RingBatches), help: "the same, in batches", parse: count(func(c *Config) *int { return &c.Limits.RingBatches }, 1, 1<<24)},
		{flag: "cache-memory-bytes", unit: "bytes", variable: "FELIX_CACHE_MEMORY_BYTES", value: fmt.Sprint(d.Limits.CacheBytes), help: "entries of caches that are in memory (key, value and 64 bytes each), whole node; beyond it old ones are evicted", parse: bytes64(func(c *Config) *int64 { return &c.Limits.CacheBytes })},
		{flag: "subscriber-queue-capacity", unit: "n", variable: "FELIX_SUBSCRIBER_QUEUE_CAPACITY", alias: "FELIX_SUB_QUEUE_CAPACITY", value: fmt.Sprint(d.Limits.Delivery.Capacity), help: "published batches that may be queued for a subscriber that asks for no other number", parse: count(func(c *Config) *int { return &c.Limits.Delivery.Capacity }, 1, 1<<20)},
		{flag: "subscriber-queue-capacity-max", unit: "n", variable: "FELIX_SUBSCRIBER_QUEUE_CAPACITY_MAX", value: fmt.Sprint(d.Limits.Delivery.CapacityMax), help: "the most that a subscriber may ask for", parse: count(func(c *Config) *int { return &c.Limits.Delivery.CapacityMax }, 1, 1<<20)},
		{flag: "subscriber-queue-max-bytes", unit: "bytes", variable: "FELIX_SUB_QUEUE_MAX_BYTES", value: fmt.Sprint(d.Limits.WindowBytes), help: "the same in bytes, for any subscriber; an empty queue takes one batch of any size", parse: bytes64(func(c *Config) *int64 { return &c.Limits.WindowBytes })},
		{flag: "subscriber-memory-bytes", unit: "bytes", variable: "FELIX_SUBSCRIBER_MEMORY_BYTES", value: fmt.Sprint(d.Limits.ReaderBytes), help: "records kept for slow subscribers after their stream has let go of them, whole node", parse: bytes64(func(c *Config) *int64 { return &c.Limits.ReaderBytes })},
		{flag: "subscriber-queue-policy", unit: "name", variable: "FELIX_SUB_QUEUE_POLICY", value: d.Limits.Overflow.String(), help: "what happens to a batch that a subscriber's queue has no room for: drop_new loses it for that subscriber, block makes its publisher wait, catch_up has the subscriber read on from disk, on durable streams, and is drop_new on others; drop_old does what drop_new does", parse: overflow},
		{flag: "event-batch-max-events", unit: "n", variable: "FELIX_EVENT_BATCH_MAX_EVENTS", value: fmt.Sprint(d.Limits.Delivery.MaxEvents), help: "records in one event frame", parse: count(func(c *Config) *int { return &c.Limits.Delivery.MaxEvents }, 1, 1<<16)},
		{flag: "event-batch-max-bytes", unit: "bytes", variable: "FELIX_EVENT_BATCH_MAX_BYTES", value: fmt.Sprint(d.Limits.Delivery.MaxBytes), help: "bytes of records in one event frame; a larger record travels alone", parse: count(func(c *Config) *int { return &c.Limits.Delivery.MaxBytes }, 1, 1<<40)},
		{flag: "event-batch-max-delay-us", unit: "us", variable: "FELIX_EVENT_BATCH_MAX_DELAY_US", value: fmt.Sprint(d.Limits.Delivery.MaxDelay.Microseconds()), help: "time a busy subscriber's events may wait for others to leave with them; a lone one never waits", parse: micros(func(c *Config) *time.Duration { return &c.Limits.Delivery.MaxDelay })},
		{flag: "max-subscriptions-per-conn", unit: "n", variable: "FELIX_MAX_SUBSCRIPTIONS_PER_CONN", value: fmt.Sprint(d.Limits.Delivery.PerIdentity), help: "subscriptions of one principal on one connection", parse: count(func(c *Config) *int { return &c.Limits.Delivery.PerIdentity }, 1, 1<<20)},
		{flag: "max-subscriptions-per-conn-total", unit: "n", variable: "FELIX_MAX_SUBSCRIPTIONS_PER_CONN_TOTAL", value: "0", help: "the same for all principals of a connection; 0 is four times as many", parse: count(func(c *Config) *int { return &c.Limits.Delivery.PerConnection }, 0, 1<<22)},
		{flag: "max-subscriptions", unit: "n", variable: "FELIX_MAX_SUBSCRIPTIONS", value: fmt.Sprint(d.Limits.Delivery.PerNode), help: "subscriptions and watches of all connections, about 18 KB each", parse: count(func(c *Config) *int { return &c.Limits.Delivery.PerNode }, 1, 1<<26)},
		{flag: "max-client-connections", unit: "n", variable: "FELIX_MAX_CLIENT_CONNECTIONS", value: fmt.Sprint(d.MaxConnections), help: "client connections; more are refused before their handshake", parse: count(func(c *Config) *int { return &c.MaxConnections }, 1, 1<<20)},
		{flag: "max-connections-per-ip", unit: "n", variable: "FELIX_MAX_CONNECTIONS_PER_IP", value: fmt.Sprint(d.MaxPerIP), help: "the same for one client address", parse: count(func(c *Config) *int { return &c.MaxPerIP }, 1, 1<<20)},
		{flag: "auth-timeout-ms", unit: "ms", variable: "FELIX_AUTH_TIMEOUT_MS", value: ms(d.AuthTimeout), help: "time a client has to send a valid token", parse: millis(func(c *Config) *time.Duration { return &c.AuthTimeout }, 1)},
		{flag: "conn-recv-window", unit: "bytes", variable: "FELIX_BROKER_PUB_CONN_RECV_WINDOW", value: fmt.Sprint(d.Windows.ConnMax), help: "QUIC receive window of a client connection, in bytes", parse: window(func(c *Config) *uint64 { return &c.Windows.ConnMax })},
		{flag: "stream-recv-window", unit: "bytes", variable: "FELIX_BROKER_PUB_STREAM_RECV_WINDOW", value: fmt.Sprint(d.Windows.StreamMax), help: "QUIC receive window of one stream, in bytes", parse: window(func(c *Config) *uint64 { return &c.Windows.StreamMax })},
		{flag: "tenant-metrics-max", unit: "n", variable: "FELIX_TENANT_METRICS_MAX", value: fmt.Sprint(d.Limits.TenantLabels), help: "tenants with a label of their own in metrics; all others share _overflow", parse: count(func(c *Config) *int { return &c.Limits.TenantLabels }, 0, 1<<20)},
		{flag: "timing-sample-every", unit: "n", variable: "FELIX_TIMING_SAMPLE_EVERY", value: fmt.Sprint(d.TimingEvery), help: "one request in so many is timed, stage by stage (felix_stage_seconds)", parse: count(func(c *Config) *int { return &c.TimingEvery }, 1, 1<<20)},
		{flag: "disable-timings", unit: "bool", variable: "FELIX_DISABLE_TIMINGS", value: "false", help: "time no request at all", parse: boolean(func(c *Config) *bool { return &c.DisableTimings })},
		{flag: "receive-offload", unit: "mode", variable: "FELIX_RECEIVE_OFFLOAD", value: "auto", help: "let the kernel join UDP datagrams: auto, on or off", parse: func(v string, c *Config) (err error) {
			c.Offload, err = transport.ParseOffload(v)
			return err
		}},
		{flag: "require-alpn", unit: "bool", variable: "FELIX_TLS_REQUIRE_ALPN", value: "false", help: "refuse clients that do not offer felix/1", parse: boolean(func(c *Config) *bool { return &c.RequireALPN })},
		{flag: "tls-cipher-suites", unit: "names", variable: "FELIX_TLS_CIPHER_SUITES", value: "", help: "TLS 1.3 suites that may be used, comma-separated; empty allows all", parse: func(v string, c *Config) (err error) {
			if v == "" {
				return nil
			}
			c.CipherSuites, err = transport.ParseCipherSuites(v)
			return err
		}},
		{flag: "fault-door", unit: "bool", variable: "FELIX_FAULT_DOOR", value: "false", help: "open fault.sock in the data directory: whoever may write to it can crash, pause and slow actors", parse: boolean(func(c *Config) *bool { return &c.FaultDoor })},
	}
	return append(list, durableSettings()...)
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func text(field func(*Config) *string) func(string, *Config) error {
	return func(v string, c *Config) error {
		if v == "" {
			return fmt.Errorf("it is empty")
		}
		*field(c) = v
		return nil
	}
}

func address(field func(*Config) *string) func(string, *Config) error {
	return func(v string, c *Config) error {
		_, port, err := net.SplitHostPort(v)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return fmt.Errorf("%q is no host:port, like 127.0.0.1:5000", v)
		}
		*field(c) = v
		return nil
	}
}

func oneOf(field func(*Config) *string, names ...string) func(string, *Config) error {
	return func(v string, c *Config) error {
		if !slices.Contains(names, v) {
			return fmt.Errorf("%q is none of %s", v, strings.Join(names, ", "))
		}
		*field(c) = v
		return nil
	}
}

func number(v string, low, high uint64) (uint64, error) {
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%q is no whole number from %d to %d", v, low, high)
	}
	return n, nil
}

func count(field func(*Config) *int, low, high uint64) func(string, *Config) error {
	return func(v string, c *Config) error {
		n, err := number(v, low, high)
		*field(c) = int(n)
		return err
	}
}

func bytes64(field func(*Config) *int64) func(string, *Config) error {
	return func(v string, c *Config) error {
		n, err := number(v, 1<<16, 1<<40)
		*field(c) = int64(n)
		return err
	}
}

func window(field func(*Config) *uint64) func(string, *Config) error {
	return func(v string, c *Config) error {
		n, err := number(v, 1<<14, 1<<32)
		*field(c) = n
		return err
	}
}

// millis reads a duration; a day is long enough for anything this daemon waits for.
func millis(field func(*Config) *time.Duration, low uint64) func(string, *Config) error {
	return func(v string, c *Config) error {
		n, err := number(v, low, uint64(24*time.Hour/time.Millisecond))
		*field(c) = time.Duration(n) * time.Millisecond
		return err
	}
}

// micros reads a duration; a second is more than any event should wait to be joined by others.
func micros(field func(*Config) *time.Duration) func(string, *Config) error {
	return func(v string, c *Config) error {
		n, err := number(v, 0, uint64(time.Second/time.Microsecond))
		*field(c) = time.Duration(n) * time.Microsecond
		return err
	}
}

// overflow reads the policy of subscribers' queues. One that ephemeral streams cannot follow is for durable ones alone: the others
// drop what is new, since what has left their memory is nowhere to be read again.
func overflow(v string, c *Config) (err error) {
	c.Limits.Overflow, err = storage.ParsePolicy(v)
	return err
}

func boolean(field func(*Config) *bool) func(string, *Config) error {
	return func(v string, c *Config) error {
		switch strings.ToLower(v) {
		case "1", "true", "yes":
			*field(c) = true
		case "0", "false", "no":
			*field(c) = false
		default:
			return fmt.Errorf("%q is neither true nor false", v)
		}
		return nil
	}
}

// configFlag names the flag of the file of settings.
const configFlag = "config"

// addFlags makes a flag of every setting, and one for the file that may hold them.
func addFlags(flags *pflag.FlagSet, all []*setting) {
	flags.String(configFlag, "", "YAML file of settings, which win over variables and give way to flags; a key is the variable's name without FELIX_ or FELIX_BROKER_, in small letters ["+configVariable+"]")
	for _, s := range all {
		f := flags.VarPF(flagValue{s}, s.flag, "", s.help+" ["+s.variable+"]")
		if s.unit == "bool" {
			f.NoOptDefVal = "true" // --require-alpn alone turns it on
		}
	}
}

// flagValue is a setting as pflag wants it. Values are judged in load, together with those of the variables.
type flagValue struct{ s *setting }

func (v flagValue) String() string {
	if v.s == nil { // pflag asks a zero value what it looks like
		return ""
	}
	return v.s.value
}

func (v flagValue) Set(text string) error {
	v.s.value = text
	return nil
}

func (v flagValue) Type() string { return v.s.unit }
