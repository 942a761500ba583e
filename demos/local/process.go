package local

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
)

// Durable says what a demo's other process is: a broker with one durable stream in a folder, whom nobody can tell from the one before when it is
// started again.
type Durable struct {
	Demo     string // what it calls itself when it complains
	Variable string // makes the demo's program the broker; its value is the folder
	Stream   string
	// Adjust, when not nil, may change how the node has its disk.
	Adjust func(*shardactor.DiskOptions)
}

// Main is the broker if this process was started as one: it serves until it is killed or whoever started it is gone, and asked is true. Call it
// first thing.
func (d Durable) Main() (code int, asked bool) {
	dir := os.Getenv(d.Variable)
	if dir == "" {
		return 0, false
	}
	if err := d.serve(dir, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: broker: %v\n", d.Demo, err)
		return 1, true
	}
	return 0, true
}

// Place is how a client finds a broker.
type Place struct {
	Addr, Tenant, Token string
	CA                  []byte
}

// Client returns options that connect to it. A busy machine needs more than the default for a handshake.
func (p Place) Client() client.Options {
	return client.Options{Addrs: []string{p.Addr}, TenantID: p.Tenant, Token: p.Token, CAPEM: p.CA, DialTimeout: 10 * time.Second}
}

// Process is the broker, seen from the demo.
type Process struct {
	Place
	cmd *exec.Cmd
	in  io.Closer
}

// Start starts it on a folder and returns once it serves. It has the same address each time.
func (d Durable) Start(dir string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), d.Variable+"="+dir)
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &p.Place)
	}
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("start the broker: it did not say where it is: %w", err)
	}
	return p, nil
}

// Kill ends the process as it stands; there may be none.
func (p *Process) Kill() {
	if p == nil {
		return
	}
	_ = p.in.Close()
	_ = p.cmd.Process.Kill() // it may be gone already
	_ = p.cmd.Wait()
}

// serve says where the broker is and serves until in ends.
func (d Durable) serve(dir string, in io.Reader, out io.Writer) (err error) {
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
	disk.Ready = func() { close(ready) }
	bad := make(chan error, 1)
	disk.OnDamaged = func(err error) {
		select {
		case bad <- err:
		default:
		}
	}
	if d.Adjust != nil {
		d.Adjust(&disk)
	}
	b, err := Start(Options{
		Streams: []Stream{{Name: d.Stream, Durable: true}}, Identity: identity,
		// What a slow disk leaves unknown for a while is told in the end: a demo counts what became of it.
		Adjust: func(o *node.Options) { o.Disk, o.Limits.AckWait = &disk, patience },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close(), store.Close()) }()
	select {
	case <-ready:
	case err := <-bad:
		return err
	case <-time.After(patience):
		return fmt.Errorf("the log is not open after %v", patience)
	}
	c := b.Client()
	if err := json.NewEncoder(out).Encode(Place{Addr: c.Addrs[0], Tenant: c.TenantID, Token: c.Token, CA: c.CAPEM}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in) // ends with whoever holds the other end
	return err
}

// identityIn is who the broker is, the same after each start: it is kept beside the log.
func identityIn(dir string) (*Identity, error) {
	path := filepath.Join(dir, "identity.json")
	if text, err := os.ReadFile(path); err == nil {
		id := &Identity{}
		return id, json.Unmarshal(text, id)
	}
	addr, err := quietAddr()
	if err != nil {
		return nil, err
	}
	id, err := NewIdentity(addr)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(id)
	if err != nil {
		return nil, err
	}
	return id, os.WriteFile(path, text, 0o600)
}

// Ports that systems do not give out by themselves: Linux begins at 32768, others above.
const (
	portsFrom = 10_000
	portsEnd  = 32_000
)

// quietAddr is an address on loopback where nobody listens now, and that the system gives to nobody who asks for any port while the broker is
// down: it has to be free when the broker comes back.
func quietAddr() (addr string, err error) {
	for range 1000 {
		var l *net.UDPConn
		port := portsFrom + rand.IntN(portsEnd-portsFrom)
		if l, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}); err == nil {
			return l.LocalAddr().String(), l.Close()
		}
	}
	return "", err
}
