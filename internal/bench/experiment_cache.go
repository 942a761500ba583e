package bench

import (
	"context"
	"fmt"
	"strings"
)

// CacheSide is one cache that is measured.
type CacheSide struct {
	Label   string // what kind of cache it is; empty: nobody says
	Cache   string
	Durable bool        // its puts are on the device before they are answered
	Targets []CacheGoal // of its operations
}

// CacheGoal is what the p50 of an operation may be in multiples of a raw echo's, at most.
type CacheGoal struct {
	Op     CacheOp
	AtMost float64
}

// CacheSpec is requests to caches, each caller one at a time.
type CacheSpec struct {
	Name, Title string
	Sides       []CacheSide
	Ops         []CacheOp
	Payload     int
	Keys        int
	Concurrency int // callers, each on a stream of its own
	Conns       int
	Redis       RedisBeside
}

// RedisBeside is what stands beside the caches.
type RedisBeside struct {
	Memory  *Redis // keeps nothing; nil: there is none
	Durable *Redis // for puts of durable caches; nil: there is none
	Conns   int    // of all callers together; 0: one for each
	Missing string // why there is none; "" when there is, or none was asked for
}

// CacheExperiment compares cache requests with a raw echo of the payload at the same concurrency, and with what a redis-server does. A nil
// raw leaves out the echo.
func CacheExperiment(f Felixd, raw *Raw, s CacheSpec) Experiment {
	e := Experiment{
		Name: s.Name, Title: s.Title, Loop: "closed",
		Settings: []Setting{settingOf("payload", fmt.Sprintf("%d B", s.Payload)), settingOf("concurrency", s.Concurrency), settingOf("streams", s.Concurrency),
			settingOf("connections", s.Conns), settingOf("keys", s.Keys)},
	}
	for _, side := range s.Sides {
		for _, op := range s.Ops {
			e.Cases = append(e.Cases, s.cacheCase(f, side, op))
		}
	}
	if raw != nil {
		echo := EchoPlan{Peer: raw.Process.Peer, Payload: s.Payload, Callers: s.Concurrency, Conns: s.Conns}
		s.compareWithEcho(&e, len(e.Cases))
		e.Cases = append(e.Cases, Case{Label: "raw echo", Run: func(ctx context.Context, timing Timing) (Result, error) {
			return s.load().Run(ctx, timing, raw.meter(), func(ctx context.Context) (*Callers, error) { return OpenEcho(ctx, echo) })
		}})
	}
	s.addRedis(&e)
	return e
}

func (s CacheSpec) load() CallLoad { return CallLoad{Payload: s.Payload} }

// cacheCase is one operation on one cache. How many records a sync made durable is told of puts to a durable cache alone: what else was
// synced meanwhile is not theirs.
func (s CacheSpec) cacheCase(f Felixd, side CacheSide, op CacheOp) Case {
	plan := CachePlan{
		Options: f.Options, Namespace: f.Namespace, Cache: side.Cache, Op: op, Payload: s.Payload, Keys: s.Keys, Callers: s.Concurrency, Conns: s.Conns,
	}
	run := func(ctx context.Context, timing Timing) (Result, error) {
		return s.load().Run(ctx, timing, f.Meter, func(ctx context.Context) (*Callers, error) { return OpenCache(ctx, plan) })
	}
	switch {
	case op != Put || !side.Durable && side.Label != "":
		run = syncless(run)
	case side.Durable:
		run = noteSyncless(run, f.Meter != nil)
	}
	return Case{Label: words("felixd", side.Label, string(op)), Run: run}
}

// noteSyncless notes that a case that should have synced did not.
func noteSyncless(run func(context.Context, Timing) (Result, error), metered bool) func(context.Context, Timing) (Result, error) {
	return func(ctx context.Context, timing Timing) (Result, error) {
		r, err := run(ctx, timing)
		if err == nil && metered && r.RecordsPerSync == nil {
			r.Notes = append(r.Notes, "the broker synced nothing: the cache is in memory, or is not synced before a put is answered")
		}
		return r, err
	}
}

// compareWithEcho compares all that is there with the case that is about to come.
func (s CacheSpec) compareWithEcho(e *Experiment, echo int) {
	for i, side := range s.Sides {
		for j, op := range s.Ops {
			of, title := i*len(s.Ops)+j, s.Title+", "+words(side.Label, string(op))
			e.Comparisons = append(e.Comparisons,
				Comparison{Label: title + " p50", Figure: P50, Of: of, By: echo, AtMost: true, Target: side.target(op)},
				Comparison{Label: title + " p99", Figure: P99, Of: of, By: echo})
			e.Comparisons = append(e.Comparisons, costs(title, of, echo)...)
		}
	}
}

func (c CacheSide) target(op CacheOp) float64 {
	for _, t := range c.Targets {
		if t.Op == op {
			return t.AtMost
		}
	}
	return 0
}

// addRedis adds what a redis-server does and compares with it, or says that there is none.
func (s CacheSpec) addRedis(e *Experiment) {
	if s.Redis.Missing != "" {
		e.Notes = append(e.Notes, s.Redis.Missing)
	}
	for _, server := range []*Redis{s.Redis.Memory, s.Redis.Durable} {
		for _, op := range s.Ops {
			if server == nil || server.Durable && op != Put { // what it reads is in memory either way
				continue
			}
			by := len(e.Cases)
			e.Cases = append(e.Cases, s.redisCase(server, op))
			for i, side := range s.Sides {
				if op == Put && (side.Durable && s.Redis.Durable != nil) != server.Durable {
					continue // it is compared with the other one
				}
				e.Comparisons = append(e.Comparisons, Comparison{
					Label: fmt.Sprintf("%s, %s p50, against redis", s.Title, words(side.Label, string(op))), Figure: P50, Of: i*len(s.Ops) + s.index(op), By: by,
				})
			}
		}
		if server != nil {
			e.Settings = append(e.Settings, settingOf(server.label(), fmt.Sprintf("%s, TLS 1.3, connections %d", server.Version, s.redisConns())))
		}
	}
}

func (s CacheSpec) index(op CacheOp) int {
	for i, o := range s.Ops {
		if o == op {
			return i
		}
	}
	panic("bench: not measured: " + string(op))
}

func (s CacheSpec) redisConns() int {
	if s.Redis.Conns > 0 {
		return min(s.Redis.Conns, s.Concurrency)
	}
	return s.Concurrency
}

func (s CacheSpec) redisCase(server *Redis, op CacheOp) Case {
	calls := RedisCalls{Server: server, Op: op, Payload: s.Payload, Keys: s.Keys, Callers: s.Concurrency, Conns: s.redisConns()}
	return Case{Label: words(server.label(), string(op)), Run: func(ctx context.Context, timing Timing) (Result, error) {
		return s.load().Run(ctx, timing, server, func(ctx context.Context) (*Callers, error) { return OpenRedis(ctx, calls) })
	}}
}

// label names the server in a report.
func (r *Redis) label() string {
	if r.Durable {
		return "redis appendfsync always"
	}
	return "redis in memory"
}

// words joins those that are not empty.
func words(all ...string) string { return strings.Join(strings.Fields(strings.Join(all, " ")), " ") }
