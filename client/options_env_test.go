package client

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func fromEnv(variables map[string]string, o Options) (Options, error) {
	return optionsFrom(func(name string) string { return variables[name] }, o)
}

// mission 326 (pools and windows of a client)
func TestEnvironmentSetsWhatItNamesAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	for path, content := range map[string]string{ca: "pem", token: " from-file\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base := Options{TenantID: "base", ServerName: "base", Attempts: 7}
	for name, row := range map[string]struct {
		variables map[string]string
		want      func(o *Options)
	}{
		"nothing": {nil, func(*Options) {}},
		"who and where": {
			map[string]string{"FELIX_BROKERS": "a:1, b:2", "FELIX_AUTH_TENANT": "t", "FELIX_AUTH_TOKEN": "x", "FELIX_CA_FILE": ca, "FELIX_SERVER_NAME": "n"},
			func(o *Options) {
				o.Addrs, o.TenantID, o.Token, o.CAFile, o.ServerName = []string{"a:1", "b:2"}, "t", "x", ca, "n"
			},
		},
		"token by its short name":     {map[string]string{"FELIX_TOKEN": "short"}, func(o *Options) { o.Token = "short" }},
		"token by both names":         {map[string]string{"FELIX_TOKEN": "short", "FELIX_AUTH_TOKEN": "long"}, func(o *Options) { o.Token = "long" }},
		"token in a file":             {map[string]string{"FELIX_AUTH_TOKEN_FILE": token}, func(o *Options) { o.Token = "from-file" }},
		"token besides a broken file": {map[string]string{"FELIX_AUTH_TOKEN_FILE": "none", "FELIX_TOKEN": "x"}, func(o *Options) { o.Token = "x" }},
		"pools": {
			map[string]string{
				"FELIX_PUB_CONN_POOL": "4", "FELIX_PUB_STREAMS_PER_CONN": "2", "FELIX_CACHE_CONN_POOL": "8",
				"FELIX_CACHE_STREAMS_PER_CONN": "4", "FELIX_EVENT_CONN_POOL": "8",
			},
			func(o *Options) { *o = o.Pooled() },
		},
		"streams of a shared connection": {map[string]string{"FELIX_PUB_STREAMS_PER_CONN": "3"}, func(o *Options) { o.PublishStreams = 3 }},
		"event pool by its other name":   {map[string]string{"FELIX_SUB_CONNS": "5"}, func(o *Options) { o.EventConns = 5 }},
		"publishing": {
			map[string]string{
				"FELIX_PUBLISH_CHUNK_BYTES": "16384", "FELIX_PUBLISH_QUEUE_DEPTH": "32", "FELIX_PUBLISH_INFLIGHT_BYTES": "1000", "FELIX_PUBLISH_SHARDING": "rr",
			},
			func(o *Options) {
				o.PublishChunkBytes, o.PublishQueueDepth, o.PublishInflightBytes, o.PublishSharding = 16384, 32, 1000, RoundRobin
			},
		},
		"subscribing": {
			map[string]string{"FELIX_CLIENT_SUB_QUEUE_CAPACITY": "10", "FELIX_CLIENT_SUB_QUEUE_POLICY": "drop_old", "FELIX_EVENT_ROUTER_MAX_PENDING": "20"},
			func(o *Options) { o.SubQueueCapacity, o.SubQueuePolicy, o.EventRouterMaxPending = 10, QueueDropNew, 20 },
		},
		"windows": {
			map[string]string{
				"FELIX_EVENT_CONN_RECV_WINDOW": "1", "FELIX_EVENT_STREAM_RECV_WINDOW": "2", "FELIX_EVENT_SEND_WINDOW": "3",
				"FELIX_CACHE_CONN_RECV_WINDOW": "4", "FELIX_CACHE_STREAM_RECV_WINDOW": "5", "FELIX_CACHE_SEND_WINDOW": "6", "FELIX_MAX_FRAME_BYTES": "7",
			},
			func(o *Options) {
				o.EventConnRecvWindow, o.EventStreamRecvWindow, o.EventSendWindow = 1, 2, 3
				o.CacheConnRecvWindow, o.CacheStreamRecvWindow, o.CacheSendWindow, o.MaxFrameBytes = 4, 5, 6, 7
			},
		},
	} {
		want := base
		row.want(&want)
		if got, err := fromEnv(row.variables, base); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestUnusableVariableIsNamed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for variable, values := range map[string][]string{
		"FELIX_BROKERS":                   {",", "a:1,,b:2"},
		"FELIX_AUTH_TOKEN_FILE":           {"/nowhere/token", empty},
		"FELIX_CA_FILE":                   {"/nowhere/ca.pem"},
		"FELIX_CLIENT_CONFIG":             {"client.yaml"},
		"FELIX_PUB_SHARDING":              {"hash"},
		"FELIX_CLIENT_SUB_QUEUE_POLICY":   {"drop"},
		"FELIX_PUB_CONN_POOL":             {"0", "-1", "x", "1.5", "257", "99999999999999999999"},
		"FELIX_PUB_STREAMS_PER_CONN":      {"1025"},
		"FELIX_CACHE_STREAMS_PER_CONN":    {"many"},
		"FELIX_SUB_CONNS":                 {"eight"},
		"FELIX_EVENT_CONN_RECV_WINDOW":    {"256MiB", "1099511627777"},
		"FELIX_MAX_FRAME_BYTES":           {"16777217"},
		"FELIX_CLIENT_SUB_QUEUE_CAPACITY": {"0"},
	} {
		for _, value := range values {
			_, err := fromEnv(map[string]string{variable: value}, Options{})
			if e := wantAs[*EnvError](t, err); e.Variable != variable || !strings.Contains(err.Error(), variable) {
				t.Errorf("%s=%s: %v", variable, value, err)
			}
			if filepath.IsAbs(value) && value != empty && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s=%s: %v does not match the error of the file", variable, value, err)
			}
		}
	}
}

func TestOptionsFromEnvReadsTheProcessEnvironment(t *testing.T) {
	t.Setenv("FELIX_AUTH_TENANT", "from-the-process")
	if o, err := OptionsFromEnv(Options{}); err != nil || o.TenantID != "from-the-process" {
		t.Fatalf("%+v, %v", o, err)
	}
}
