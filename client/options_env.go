package client

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/felixd/felixd/wire"
)

// EnvError is a variable of the environment that cannot be used.
type EnvError struct {
	Variable string
	Problem  string // what is wrong and what would be right
	Err      error  // of reading the file it names, if that was it
}

// Error names the variable and the problem.
func (e *EnvError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("read settings: %s %s: %v", e.Variable, e.Problem, e.Err)
	}
	return fmt.Sprintf("read settings: %s %s", e.Variable, e.Problem)
}

// Unwrap gives the error of the file.
func (e *EnvError) Unwrap() error { return e.Err }

// OptionsFromEnv returns o with what the environment sets. A variable that is not set, or empty, changes nothing; one with a
// value that cannot be used is an *EnvError that names it.
//
//	FELIX_BROKERS                     Addrs, separated by commas
//	FELIX_AUTH_TENANT                 TenantID
//	FELIX_AUTH_TOKEN, FELIX_TOKEN     Token; the first wins
//	FELIX_AUTH_TOKEN_FILE             Token, when neither of those is set
//	FELIX_CA_FILE                     CAFile
//	FELIX_SERVER_NAME                 ServerName
//	FELIX_PUB_CONN_POOL               PublishConns
//	FELIX_PUB_STREAMS_PER_CONN        PublishStreams, divided by the connections
//	FELIX_PUBLISH_CHUNK_BYTES         PublishChunkBytes
//	FELIX_PUBLISH_QUEUE_DEPTH         PublishQueueDepth
//	FELIX_PUBLISH_INFLIGHT_BYTES      PublishInflightBytes
//	FELIX_PUB_SHARDING, FELIX_PUBLISH_SHARDING       PublishSharding: hash_stream or rr; the first wins
//	FELIX_CACHE_CONN_POOL             CacheConns
//	FELIX_CACHE_STREAMS_PER_CONN      CacheStreams, divided by the connections
//	FELIX_EVENT_CONN_POOL, FELIX_SUB_CONNS           EventConns; the first wins
//	FELIX_CLIENT_SUB_QUEUE_CAPACITY   SubQueueCapacity
//	FELIX_CLIENT_SUB_QUEUE_POLICY     SubQueuePolicy: block, drop_new, or drop_old, which means drop_new
//	FELIX_EVENT_CONN_RECV_WINDOW      EventConnRecvWindow, and so on for
//	FELIX_EVENT_STREAM_RECV_WINDOW, FELIX_EVENT_SEND_WINDOW,
//	FELIX_CACHE_CONN_RECV_WINDOW, FELIX_CACHE_STREAM_RECV_WINDOW, FELIX_CACHE_SEND_WINDOW
//	FELIX_EVENT_ROUTER_MAX_PENDING    EventRouterMaxPending
//	FELIX_MAX_FRAME_BYTES             MaxFrameBytes
//
// FELIX_CLIENT_CONFIG names a file of other clients of this protocol, which this one does not read: it is an *EnvError
// rather than a setting that is silently without effect.
func OptionsFromEnv(o Options) (Options, error) { return optionsFrom(os.Getenv, o) }

// envVariable is one variable and what its value sets.
type envVariable struct {
	name string
	set  func(o *Options, value string) error
}

func optionsFrom(getenv func(string) string, o Options) (Options, error) {
	var perPublish, perCache int
	settings := append(textSettings(), numberSettings()...)
	settings = append(settings,
		[]envVariable{{"FELIX_PUB_STREAMS_PER_CONN", number(wire.MaxStreams, func(*Options) *int { return &perPublish })}},
		[]envVariable{{"FELIX_CACHE_STREAMS_PER_CONN", number(wire.MaxStreams, func(*Options) *int { return &perCache })}})
	for _, variables := range settings {
		for _, v := range variables {
			value := getenv(v.name)
			if value == "" {
				continue
			}
			if err := v.set(&o, value); err != nil {
				return Options{}, named(v.name, err)
			}
			break // the first that is set wins
		}
	}
	if perPublish > 0 {
		o.PublishStreams = perPublish * max(o.PublishConns, 1)
	}
	if perCache > 0 {
		o.CacheStreams = perCache * max(o.CacheConns, 1)
	}
	return o, nil
}

// named puts the variable into the error of its value.
func named(variable string, err error) error {
	var e *EnvError
	if errors.As(err, &e) {
		e.Variable = variable
	}
	return err
}

func textSettings() [][]envVariable {
	token := func(o *Options, value string) error { o.Token = value; return nil }
	return [][]envVariable{
		{{"FELIX_CLIENT_CONFIG", refuseSettingsFile}},
		{{"FELIX_BROKERS", setAddrs}},
		{{"FELIX_AUTH_TENANT", func(o *Options, value string) error { o.TenantID = value; return nil }}},
		{{"FELIX_AUTH_TOKEN", token}, {"FELIX_TOKEN", token}, {"FELIX_AUTH_TOKEN_FILE", setTokenFile}},
		{{"FELIX_CA_FILE", setCAFile}},
		{{"FELIX_SERVER_NAME", func(o *Options, value string) error { o.ServerName = value; return nil }}},
		{{"FELIX_PUB_SHARDING", setSharding}, {"FELIX_PUBLISH_SHARDING", setSharding}},
		{{"FELIX_CLIENT_SUB_QUEUE_POLICY", setQueuePolicy}},
	}
}

func refuseSettingsFile(*Options, string) error {
	return &EnvError{Problem: "names a settings file, which this client does not read; set the variables it stands for and unset it"}
}

func setAddrs(o *Options, value string) error {
	o.Addrs = nil
	for addr := range strings.SplitSeq(value, ",") {
		if addr = strings.TrimSpace(addr); addr == "" {
			return &EnvError{Problem: fmt.Sprintf("is %q, which has an empty address; use host:port,host:port", value)}
		}
		o.Addrs = append(o.Addrs, addr)
	}
	return nil
}

func setTokenFile(o *Options, path string) error {
	token, err := os.ReadFile(path)
	if err != nil {
		return &EnvError{Problem: "names a file that cannot be read", Err: err}
	}
	if o.Token = strings.TrimSpace(string(token)); o.Token == "" {
		return &EnvError{Problem: "names a file without a token in it"}
	}
	return nil
}

func setCAFile(o *Options, path string) error {
	if _, err := os.Stat(path); err != nil {
		return &EnvError{Problem: "names a file that cannot be read", Err: err}
	}
	o.CAFile = path
	return nil
}

func setSharding(o *Options, value string) error {
	switch value {
	case "hash_stream":
		o.PublishSharding = HashStream
	case "rr":
		o.PublishSharding = RoundRobin
	default:
		return &EnvError{Problem: fmt.Sprintf("is %q; use hash_stream or rr", value)}
	}
	return nil
}

func setQueuePolicy(o *Options, value string) error {
	switch value {
	case "block":
		o.SubQueuePolicy = QueueBlock
	case "drop_new", "drop_old":
		o.SubQueuePolicy = QueueDropNew
	default:
		return &EnvError{Problem: fmt.Sprintf("is %q; use block or drop_new", value)}
	}
	return nil
}

func numberSettings() [][]envVariable {
	events := number(connsMax, func(o *Options) *int { return &o.EventConns })
	return [][]envVariable{
		{{"FELIX_EVENT_CONN_POOL", events}, {"FELIX_SUB_CONNS", events}},
		{{"FELIX_PUB_CONN_POOL", number(connsMax, func(o *Options) *int { return &o.PublishConns })}},
		{{"FELIX_CACHE_CONN_POOL", number(connsMax, func(o *Options) *int { return &o.CacheConns })}},
		{{"FELIX_PUBLISH_CHUNK_BYTES", number(wire.MaxPayload, func(o *Options) *int { return &o.PublishChunkBytes })}},
		{{"FELIX_PUBLISH_QUEUE_DEPTH", number(laneDepthMax, func(o *Options) *int { return &o.PublishQueueDepth })}},
		{{"FELIX_PUBLISH_INFLIGHT_BYTES", number(windowMax, func(o *Options) *int64 { return &o.PublishInflightBytes })}},
		{{"FELIX_CLIENT_SUB_QUEUE_CAPACITY", number(queueMax, func(o *Options) *int { return &o.SubQueueCapacity })}},
		{{"FELIX_EVENT_CONN_RECV_WINDOW", number(windowMax, func(o *Options) *uint64 { return &o.EventConnRecvWindow })}},
		{{"FELIX_EVENT_STREAM_RECV_WINDOW", number(windowMax, func(o *Options) *uint64 { return &o.EventStreamRecvWindow })}},
		{{"FELIX_EVENT_SEND_WINDOW", number(windowMax, func(o *Options) *uint64 { return &o.EventSendWindow })}},
		{{"FELIX_CACHE_CONN_RECV_WINDOW", number(windowMax, func(o *Options) *uint64 { return &o.CacheConnRecvWindow })}},
		{{"FELIX_CACHE_STREAM_RECV_WINDOW", number(windowMax, func(o *Options) *uint64 { return &o.CacheStreamRecvWindow })}},
		{{"FELIX_CACHE_SEND_WINDOW", number(windowMax, func(o *Options) *uint64 { return &o.CacheSendWindow })}},
		{{"FELIX_EVENT_ROUTER_MAX_PENDING", number(queueMax, func(o *Options) *int { return &o.EventRouterMaxPending })}},
		{{"FELIX_MAX_FRAME_BYTES", number(wire.MaxPayload, func(o *Options) *int { return &o.MaxFrameBytes })}},
	}
}

// number sets a field to a whole number from 1 to most.
func number[T int | int64 | uint64](most int64, field func(o *Options) *T) func(*Options, string) error {
	return func(o *Options, value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 || n > most {
			return &EnvError{Problem: fmt.Sprintf("is %q; use a whole number from 1 to %d", value, most)}
		}
		*field(o) = T(n)
		return nil
	}
}
