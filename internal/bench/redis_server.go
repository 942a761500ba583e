package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/felixd/felixd/internal/bench/machine"
)

const (
	// redisStartTime is how long a redis-server may take until it answers, redisStopTime how long until it has ended, and redisPause
	// when it is asked again.
	redisStartTime = time.Minute
	redisStopTime  = time.Minute
	redisPause     = 20 * time.Millisecond
	// redisTries is how often a port is chosen: somebody else may take it before the server does.
	redisTries = 3
)

// RedisPlan is a redis-server to start.
type RedisPlan struct {
	Program string // path
	Durable bool   // each write is on the device before it is answered
	Folder  string // on the disk to use; "": where temporary files go
	CPU     int    // to run on; or machine.Any
}

// Redis is a redis-server on a loopback port, over TLS only, with a certificate of its own authority and all its files in a folder that
// Close removes. It is a Meter too.
type Redis struct {
	Version string
	Durable bool

	folder  string
	addr    string
	config  *tls.Config
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has
	waited  error         // how; after ended
	said    *firstBytes
	mu      sync.Mutex // of control
	control *redisConn
}

// StartRedis starts a server and waits until it answers.
func StartRedis(ctx context.Context, p RedisPlan) (r *Redis, err error) {
	folder, err := os.MkdirTemp(p.Folder, "felixctl-bench-redis-")
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	absolute, err := filepath.Abs(folder) // the server leaves for it before it reads what else it is told
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", errors.Join(err, os.RemoveAll(folder)))
	}
	r = &Redis{Durable: p.Durable, folder: absolute}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start %s: %w", p.Program, err), r.Close())
			r = nil
		}
	}()
	if err := r.certify(); err != nil {
		return r, err
	}
	for range redisTries {
		if err = r.launch(p); err != nil {
			return r, err
		}
		if err = r.await(ctx); err == nil || ctx.Err() != nil {
			return r, err
		}
		if stopped := r.end(); stopped != nil {
			err = fmt.Errorf("%w; %w", err, stopped)
		}
	}
	return r, err
}

// launch chooses a port and starts the process.
func (r *Redis) launch(p RedisPlan) error {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r.addr = free.Addr().String()
	if err := free.Close(); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(r.addr)
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.path("redis.conf"), []byte(r.settings(port)), 0o600); err != nil {
		return err
	}
	r.said = &firstBytes{most: redisSaid}
	cmd := exec.Command(p.Program, r.path("redis.conf"))
	cmd.Stdout, cmd.Stderr = r.said, r.said
	if err := machine.Start(cmd, p.CPU); err != nil {
		return err
	}
	r.cmd, r.ended = cmd, make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		r.waited = cmd.Wait()
	}(r.ended)
	return nil
}

// await returns when the server answers, or has ended, or takes too long.
func (r *Redis) await(ctx context.Context) error {
	late := time.NewTimer(redisStartTime)
	defer late.Stop()
	for {
		err := r.greet(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(redisPause):
		case <-r.ended:
			r.cmd = nil
			return fmt.Errorf("it ended at once: %s", r.said.text())
		case <-late.C:
			return fmt.Errorf("it did not answer within %v: %w", redisStartTime, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// greet connects and asks for the version.
func (r *Redis) greet(ctx context.Context) error {
	conn, err := dialRedis(ctx, context.Background(), r.addr, r.config) // it lives as long as the server, which Close ends
	if err != nil {
		return err
	}
	late := time.AfterFunc(redisStartTime, func() { _ = conn.close() })
	defer late.Stop()
	info, _, err := conn.do(make([]byte, redisInfo), []byte("INFO"), []byte("server"))
	if err != nil {
		return errors.Join(err, conn.close())
	}
	r.control, r.Version = conn, infoField(info, "redis_version")
	return nil
}

// end stops the process, if it runs.
func (r *Redis) end() error {
	if r.cmd == nil {
		return nil
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it has ended by itself when this fails, and waited says how
	late := time.AfterFunc(redisStopTime, func() { _ = r.cmd.Process.Kill() })
	defer late.Stop()
	<-r.ended
	r.cmd = nil
	if r.waited != nil {
		return fmt.Errorf("stop redis-server: %w: %s", r.waited, r.said.text())
	}
	return nil
}

// Close ends the server, waits for its end, and removes its folder.
func (r *Redis) Close() error {
	var err error
	if r.control != nil {
		err = r.control.close()
	}
	return errors.Join(err, r.end(), os.RemoveAll(r.folder))
}
