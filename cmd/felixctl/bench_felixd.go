package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/bench"
	"github.com/felixd/felixd/internal/bench/machine"
)

const (
	// felixdStartTime is how long a felixd may take until it is ready, and felixdStopTime how long until it has ended.
	felixdStartTime = time.Minute
	felixdStopTime  = time.Minute
	// felixdReady begins the line with which it says so.
	felixdReady = "ready in "
	// createPatience is how long a broker may take to learn of a stream, and createPause when it is asked again.
	createPatience = time.Minute
	createPause    = 50 * time.Millisecond
)

// ownFelixd is a felixd that the suite has started.
type ownFelixd struct {
	felixd  bench.Felixd
	disk    bench.Disk
	modules []machine.Module

	cmd     *exec.Cmd
	folders []string // removed in the end
	ended   chan struct{}
}

// startFelixd starts a felixd with default settings, but for how it syncs, and makes the streams and caches that the suite uses.
func (b *benchCommands) startFelixd(ctx context.Context, program, fsync string) (own *ownFelixd, err error) {
	own = &ownFelixd{ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, own.stop())
		}
	}()
	if program, err = b.findFelixd(ctx, program, own); err != nil {
		return own, err
	}
	if own.modules, err = machine.ModulesOf(program, append(benchModules()[:2], "github.com/asynkron/protoactor-go")...); err != nil {
		return own, err
	}
	data, err := own.folder()
	if err != nil {
		return own, err
	}
	own.disk = bench.Disk(data)
	if err := b.launch(program, data, fsync, own); err != nil {
		return own, err
	}
	return own, b.prepare(ctx, filepath.Join(data, "dev.json"), own)
}

// folder makes one that lives as long as the felixd.
func (o *ownFelixd) folder() (string, error) {
	path, err := os.MkdirTemp("", "felixctl-bench-")
	if err != nil {
		return "", fmt.Errorf("make a folder for felixd: %w", err)
	}
	o.folders = append(o.folders, path)
	return path, nil
}

// findFelixd is the program to start: the named one, the one beside this program, that in PATH, or one built from the source here.
func (b *benchCommands) findFelixd(ctx context.Context, named string, own *ownFelixd) (string, error) {
	if named != "" {
		return exec.LookPath(named)
	}
	if self, err := os.Executable(); err == nil {
		if beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), "felixd")); err == nil {
			return beside, nil
		}
	}
	if found, err := exec.LookPath("felixd"); err == nil {
		return found, nil
	}
	source := filepath.Join(b.sys.workDir, "cmd", "felixd")
	if _, err := os.Stat(filepath.Join(source, "main.go")); err != nil {
		return "", usagef("there is no felixd beside this program, in PATH, or as source in this folder: name one with --felixd, or a running broker with --context-file")
	}
	folder, err := own.folder()
	if err != nil {
		return "", err
	}
	b.note("building felixd from the source in this folder")
	program := filepath.Join(folder, "felixd")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/felixd")
	cmd.Dir, cmd.Stderr = b.sys.workDir, b.sys.stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build felixd: %w", err)
	}
	return program, nil
}

// launch starts the program and waits until it is ready.
func (b *benchCommands) launch(program, data, fsync string, own *ownFelixd) error {
	cmd := exec.Command(program, "dev", "--data-dir", data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--api", "127.0.0.1:0", "--log-level", "warn",
		"--durable-fsync-mode", fsync)
	cmd.Stderr = b.sys.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start felixd: %w", err)
	}
	cpu := machine.Any
	if b.flags.pin {
		cpu = serverCPU
	}
	if err := machine.Start(cmd, cpu); err != nil {
		return fmt.Errorf("start felixd: %w", err)
	}
	own.cmd = cmd
	late := time.AfterFunc(felixdStartTime, func() { _ = cmd.Process.Kill() }) // the reading below then ends
	defer late.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), felixdReady) {
			go func() {
				defer close(own.ended)
				_, _ = io.Copy(io.Discard, out) // what it says on its way out; the error is that it has ended
			}()
			return nil
		}
	}
	close(own.ended)
	return fmt.Errorf("start felixd: %s ended, or was not ready within %v", program, felixdStartTime)
}

// prepare reads what the felixd tells clients, makes streams and caches, and waits until it serves them.
func (b *benchCommands) prepare(ctx context.Context, contextFile string, own *ownFelixd) error {
	here := *b.app
	here.flags = globalFlags{contextFile: contextFile}
	here.sys.getenv = func(string) string { return "" } // another broker's settings must not get in between
	there := &benchCommands{app: &here, flags: b.flags}
	there.flags.metricsURL = ""
	felixd, err := there.runningBroker(ctx)
	if err != nil {
		return err
	}
	own.felixd = felixd
	c, err := here.api()
	if err != nil {
		return err
	}
	defer c.close()
	wide, narrow, durableWide, durable := uint32(suiteShards), uint32(1), uint32(suiteWideShards), true
	for _, s := range []streamSpec{{Stream: suiteName, Shards: &wide}, {Stream: suiteNarrow, Shards: &narrow, Durable: &durable}, {Stream: suiteWide, Shards: &durableWide, Durable: &durable}} {
		if _, _, err := c.call(ctx, "create stream", http.MethodPost, c.path("streams"), s); err != nil {
			return err
		}
	}
	memory := true
	for _, s := range []cacheSpec{{Cache: suiteName, InMemory: &memory}, {Cache: suiteLogged}} {
		if _, _, err := c.call(ctx, "create cache", http.MethodPost, c.path("caches"), s); err != nil {
			return err
		}
	}
	return awaitServed(ctx, felixd, served)
}

// awaitServed returns once use succeeds: the broker knows what it asks for and has opened the logs.
func awaitServed(ctx context.Context, f bench.Felixd, use func(ctx context.Context, c *client.Client, namespace string) error) error {
	ctx, cancel := context.WithTimeout(ctx, createPatience)
	defer cancel()
	c, err := client.Connect(ctx, f.Options)
	if err != nil {
		return err
	}
	for {
		if err = use(ctx, c, f.Namespace); err == nil || !errors.Is(err, client.ErrNotFound) && !errors.Is(err, client.ErrUnavailable) {
			return errors.Join(err, c.Close(ctx))
		}
		select {
		case <-time.After(createPause):
		case <-ctx.Done():
			return errors.Join(err, c.Close(ctx))
		}
	}
}

// served uses everything once that the suite does.
func served(ctx context.Context, c *client.Client, namespace string) error {
	if _, err := c.StreamShards(ctx, namespace, suiteName); err != nil {
		return err
	}
	for _, cache := range []string{suiteName, suiteLogged} {
		if err := c.CachePut(ctx, namespace, cache, "is it there?", nil, time.Second); err != nil {
			return err
		}
	}
	keys, err := bench.ShardKeys(ctx, c, namespace, suiteWide, suiteWideShards)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if _, err := c.Publish(ctx, namespace, suiteWide, []byte("is it there?"), client.WithKey(key)); err != nil {
			return err
		}
	}
	_, err = c.Publish(ctx, namespace, suiteNarrow, []byte("is it there?"))
	return err
}

// stop ends the felixd and removes its folders.
func (o *ownFelixd) stop() error {
	var err error
	if o.cmd != nil {
		_ = o.cmd.Process.Signal(syscall.SIGTERM) // it has ended by itself when this fails, and Wait says how
		late := time.AfterFunc(felixdStopTime, func() { _ = o.cmd.Process.Kill() })
		<-o.ended
		if err = o.cmd.Wait(); err != nil {
			err = fmt.Errorf("stop felixd: %w", err)
		}
		late.Stop()
	}
	for _, folder := range o.folders {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}
