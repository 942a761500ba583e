package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
)

// brokerVariable makes this program the broker; its value is the folder of the broker's files.
const brokerVariable = "FELIX_DEMO_QUEUE"

// streamName is the one stream.
const streamName = "jobs"

// place is how a client finds the broker.
type place struct {
	Addr, Tenant, Token string
	CA                  []byte
}

func (p place) client() client.Options {
	return client.Options{Addrs: []string{p.Addr}, TenantID: p.Tenant, Token: p.Token, CAPEM: p.CA}
}

// broker is the other process.
type broker struct {
	place place
	cmd   *exec.Cmd
	in    io.Closer
}

// startBroker starts it on a folder and returns once it serves. It has the same address each time.
func startBroker(dir string) (*broker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &broker{cmd: exec.Command(self)}
	b.cmd.Env = append(os.Environ(), brokerVariable+"="+dir)
	b.cmd.Stderr = os.Stderr
	if b.in, err = b.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &b.place)
	}
	if err != nil {
		b.kill()
		return nil, fmt.Errorf("start the broker: it did not say where it is: %w", err)
	}
	return b, nil
}

// kill ends the process as it stands; there may be none.
func (b *broker) kill() {
	if b == nil {
		return
	}
	_ = b.in.Close()
	_ = b.cmd.Process.Kill() // it may be gone already
	_ = b.cmd.Wait()
}

// serve is the broker: it says where it is and serves until it is killed, or until whoever started it is gone.
func serve(dir string, in io.Reader, out, errs io.Writer) int {
	if err := serveUntil(dir, in, out); err != nil {
		fmt.Fprintln(errs, "queue: broker:", err)
		return 1
	}
	return 0
}

func serveUntil(dir string, in io.Reader, out io.Writer) (err error) {
	identity, err := identityIn(dir)
	if err != nil {
		return err
	}
	files, err := vfs.NewOS(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	pool := diskpool.New(diskpool.Options{})
	slots := diskpool.NewReadSlots(diskpool.DefaultReadSlots)
	store, err := disklog.OpenStore(files, disklog.Options{SegmentBytes: 16 << 20, Preallocate: true, Exec: pool, Slots: slots, Holder: fmt.Sprint("pid ", os.Getpid())})
	if err != nil {
		return err
	}
	disk, ready := shardactor.DefaultDiskOptions(), make(chan struct{})
	disk.Store, disk.Exec, disk.Slots = store, pool, slots
	disk.Groups.Options.BackOff = []time.Duration{0, 50 * time.Millisecond} // so that a demo is short
	disk.Ready = func() { close(ready) }
	bad := make(chan error, 1)
	disk.OnDamaged = func(err error) {
		select {
		case bad <- err:
		default:
		}
	}
	b, err := local.Start(local.Options{
		Streams: []local.Stream{{Name: streamName, Durable: true}}, Identity: identity,
		Adjust: func(o *node.Options) { o.Disk = &disk },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close(), store.Close()) }()
	select {
	case <-ready:
	case err := <-bad:
		return err
	case <-time.After(time.Minute):
		return errors.New("the log is not open after a minute")
	}
	c := b.Client()
	if err := json.NewEncoder(out).Encode(place{Addr: c.Addrs[0], Tenant: c.TenantID, Token: c.Token, CA: c.CAPEM}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in) // ends with whoever holds the other end
	return err
}

// identityIn is who the broker is, the same after each start: it is kept beside the log.
func identityIn(dir string) (*local.Identity, error) {
	path := filepath.Join(dir, "identity.json")
	if text, err := os.ReadFile(path); err == nil {
		id := &local.Identity{}
		return id, json.Unmarshal(text, id)
	}
	port, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	addr := port.LocalAddr().String()
	if err := port.Close(); err != nil {
		return nil, err
	}
	id, err := local.NewIdentity(addr)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(id)
	if err != nil {
		return nil, err
	}
	return id, os.WriteFile(path, text, 0o600)
}
