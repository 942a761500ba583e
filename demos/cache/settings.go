package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/shardactor/reading"
)

// settings say what is measured.
type settings struct {
	warmup      int   // operations of each kind that are not counted
	samples     int   // operations of each kind that are
	payloads    []int // value sizes, in bytes
	concurrency int   // operations under way at once
	keys        int   // different keys
}

// keyBytes is more than a key of the demo has.
const keyBytes = 32

// payloadMost keeps a value's base64 far inside a frame of 16 MiB.
const payloadMost = 8 << 20

// variable is one setting of the environment.
type variable struct {
	name, standard, meaning string
	set                     func(s *settings, text string) error
}

func variables() []variable {
	return []variable{
		{"FELIX_CACHE_BENCH_WARMUP", "200", "operations of each kind before the measured ones",
			func(s *settings, v string) error { return whole(v, 0, 1_000_000, &s.warmup) }},
		{"FELIX_CACHE_BENCH_SAMPLES", "2000", "measured operations of each kind",
			func(s *settings, v string) error { return whole(v, 1, 10_000_000, &s.samples) }},
		{"FELIX_CACHE_BENCH_PAYLOADS", "0,256,4096", "value sizes in bytes, comma-separated",
			func(s *settings, v string) error { return wholes(v, 0, payloadMost, &s.payloads) }},
		{"FELIX_CACHE_BENCH_CONCURRENCY", "1", "operations under way at once",
			func(s *settings, v string) error { return whole(v, 1, 1024, &s.concurrency) }},
		{"FELIX_CACHE_BENCH_KEYS", "1024", "different keys",
			func(s *settings, v string) error { return whole(v, 1, 10_000_000, &s.keys) }},
	}
}

// readSettings takes defaults where the environment has nothing. Its error names every variable that is wrong.
func readSettings(getenv func(string) string) (settings, error) {
	var s settings
	var wrong []error
	for _, v := range variables() {
		text := getenv(v.name)
		if text == "" {
			text = v.standard
		}
		if err := v.set(&s, text); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", v.name, err))
		}
	}
	if len(wrong) == 0 {
		for _, size := range s.payloads {
			need, budget := int64(s.keys)*int64(size+keyBytes+reading.EntryOverhead), node.DefaultLimits().CacheBytes
			if need > budget {
				wrong = append(wrong, fmt.Errorf("FELIX_CACHE_BENCH_KEYS: %d keys of %d bytes need %d bytes and the cache has %d, so hits would be evicted; use fewer keys or smaller payloads", s.keys, size, need, budget))
			}
		}
	}
	return s, errors.Join(wrong...)
}

func whole(text string, low, high int, into *int) error {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < low || n > high {
		return fmt.Errorf("%q is no whole number from %d to %d", text, low, high)
	}
	*into = n
	return nil
}

func wholes(text string, low, high int, into *[]int) error {
	for part := range strings.SplitSeq(text, ",") {
		var n int
		if err := whole(part, low, high, &n); err != nil {
			return err
		}
		*into = append(*into, n)
	}
	return nil
}

// String is the headline of the report.
func (s settings) String() string {
	return fmt.Sprintf("felixd cache over QUIC on loopback, broker in this process\nconcurrency %d, %d keys, %d samples of each kind after %d of warm-up",
		s.concurrency, s.keys, s.samples, s.warmup)
}

func help() string {
	var b strings.Builder
	for _, v := range variables() {
		fmt.Fprintf(&b, "  %-30s %s [%s]\n", v.name, v.meaning, v.standard)
	}
	return b.String()
}
