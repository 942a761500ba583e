package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/spf13/pflag"

	"github.com/felixd/felixd/internal/bench"
	"github.com/felixd/felixd/internal/bench/machine"
)

// redisProgram is what is looked for in PATH.
const redisProgram = "redis-server"

// redisFlags say which redis-server stands beside caches.
type redisFlags struct {
	program     string
	none        bool
	connections int
}

func (f *redisFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.program, "redis", "", "the redis-server to start beside caches; default the one in PATH, if there is one")
	set.BoolVar(&f.none, "no-redis", false, "start no redis-server")
	set.IntVar(&f.connections, "redis-connections", 0, "connections to the redis-server, which callers share; 0: one for each caller")
}

func (f *redisFlags) check(set *pflag.FlagSet) error {
	if f.none && (f.program != "" || set.Changed("redis-connections")) {
		return usagef("--no-redis is given with --redis or --redis-connections; leave it out")
	}
	return inRange("redis-connections", f.connections, 0, benchCallersMax)
}

// startRedis starts what stands beside caches, on the disk too if one is named, and notes it in the session. A server that nobody asked
// for may be missing: the reports then say so. stop ends it.
func (b *benchCommands) startRedis(ctx context.Context, s *benchSession, f redisFlags, disk bench.Disk) (stop func() error, err error) {
	s.redis = bench.RedisBeside{Conns: f.connections}
	stop = func() error { return nil }
	if f.none {
		return stop, nil
	}
	name := f.program
	if name == "" {
		name = redisProgram
	}
	program, err := exec.LookPath(name)
	if err != nil && f.program == "" {
		s.redis.Missing = "there is no redis-server in PATH, so that none stands beside; name one with --redis"
		return stop, nil
	}
	if err != nil {
		return stop, usagef("--redis: %v", err)
	}
	started, err := b.redisServers(ctx, program, disk)
	if err != nil && f.program == "" && ctx.Err() == nil {
		s.redis.Missing = fmt.Sprintf("the redis-server in PATH did not start, so that none stands beside: %v", err)
		return stop, nil
	}
	if err != nil {
		return stop, err
	}
	s.redis.Memory = started[0]
	if len(started) > 1 {
		s.redis.Durable = started[1]
	}
	return func() error { return closeAll(started) }, nil
}

// redisServers starts one in memory and, with a disk, one that syncs there.
func (b *benchCommands) redisServers(ctx context.Context, program string, disk bench.Disk) ([]*bench.Redis, error) {
	cpu := machine.Any
	if b.flags.pin {
		cpu = serverCPU
	}
	plans := []bench.RedisPlan{{Program: program, CPU: cpu}}
	if disk != "" {
		plans = append(plans, bench.RedisPlan{Program: program, CPU: cpu, Durable: true, Folder: string(disk)})
	}
	var started []*bench.Redis
	for _, p := range plans {
		r, err := bench.StartRedis(ctx, p)
		if err != nil {
			return nil, errors.Join(err, closeAll(started))
		}
		started = append(started, r)
	}
	return started, nil
}

func closeAll(servers []*bench.Redis) error {
	var err error
	for _, r := range servers {
		err = errors.Join(err, r.Close())
	}
	return err
}
