package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/controlplane/api"
	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
	"github.com/felixd/felixd/controlplane/store/catalogfile"
	"github.com/felixd/felixd/controlplane/watch"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/sessionactor/quicconn"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// devFile is where `felixd dev` writes what a client needs.
const devFile = "dev.json"

// devContext is the content of dev.json.
type devContext struct {
	ClientAddr   string `json:"client_addr"`
	ControlPlane string `json:"control_plane"`
	HTTP         string `json:"http"`
	TenantID     string `json:"tenant_id"`
	Namespace    string `json:"namespace"`
	ClientToken  string `json:"client_token"`
	AdminToken   string `json:"admin_token"`
	CAFile       string `json:"ca_file"`
}

// daemon is one `felixd dev`, from start to stop. Each start method leaves an undo in closers, run in reverse at the end.
type daemon struct {
	config  Config
	logger  *slog.Logger
	stdout  io.Writer
	began   time.Time
	signals <-chan os.Signal

	data     *dataDir
	identity *identity
	registry *prometheus.Registry
	ready    readiness
	catalog  *store.Memory
	node     *node.Node
	listener *transport.Listener
	dev      devContext
	failed   chan error // an HTTP server that ended by itself
	applied  chan uint64
	storage  *durableStorage // nil without --durable-storage-dir
	ended    <-chan actors.Terminated
	faults   *faultDoor // nil without --fault-door
	closers  []func()
}

// run starts everything, waits for a signal, drains and stops.
func (d *daemon) run() (err error) {
	defer d.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d.failed = make(chan error, 2)
	d.applied = make(chan uint64, 1)
	for _, start := range [...]func(context.Context) error{d.openData, d.startHealth, d.startCatalog, d.openStorage, d.startNode, d.startFaultDoor, d.startClients, d.startAPI} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	d.ended = d.node.Failed(ctx)
	if over, err := d.awaitShards(); over {
		return err
	}
	if err := d.becomeReady(); err != nil {
		return err
	}
	d.keepReserve(ctx)
	d.greet()
	_, err = d.await(&starting{})
	return err
}

// keepReserve makes the reserve in the background, now that all that a start needs has been written.
func (d *daemon) keepReserve(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		keepReserve(ctx, d.data.files, d.logger, pause)
	}()
	d.onClose(func() { <-done })
}

// starting is what a start waits for. A channel is nil when it has come, or need not.
type starting struct {
	applied  <-chan uint64   // the catalog is hosted
	opened   <-chan struct{} // every log is open
	progress <-chan time.Time
}

// await waits for what ends the daemon, which is over then, or for something of a start, which it strikes off.
func (d *daemon) await(w *starting) (over bool, err error) {
	select {
	case <-w.applied:
		w.applied = nil
	case <-w.opened:
		w.opened = nil
	case <-w.progress:
		d.storage.tell(d.stdout, d.began)
	case s := <-d.signals:
		return true, d.drain(s)
	case err := <-d.failed:
		return true, &exitError{code: exitFailure, err: err}
	case err := <-d.storage.damage():
		d.giveUp("damaged")
		return true, &exitError{code: exitDamaged, err: err}
	case x := <-d.ended:
		d.giveUp("failed")
		return true, &exitError{code: exitFailure, err: fmt.Errorf("actor %s ended: %s", x.Path, terminationText(x))}
	}
	return false, nil
}

// giveUp stops serving at once.
func (d *daemon) giveUp(reason string) {
	d.ready.set(reason)
	d.faults.end()
	_ = d.node.Drain(expired())
}

// awaitShards waits until everything in the catalog is hosted and every log is open, and tells how far that is.
func (d *daemon) awaitShards() (over bool, err error) {
	ticker := time.NewTicker(openingTold)
	defer ticker.Stop()
	w := &starting{applied: d.applied, opened: d.storage.opened()}
	if w.opened != nil {
		w.progress = ticker.C
	}
	for !over && (w.applied != nil || w.opened != nil) {
		over, err = d.await(w)
	}
	return over, err
}

// openingTold is the time between two lines about a start that takes long.
const openingTold = 2 * time.Second

// drain finishes what is open, within its bound. A second signal ends it at once.
func (d *daemon) drain(s os.Signal) error {
	d.ready.set("draining")
	fmt.Fprintf(d.stdout, "%s: draining, at most %s; a second signal stops at once\n", s, d.config.DrainTimeout)
	d.faults.end() // a drain waits for actors, and would wait for a paused one
	ctx, cancel := context.WithTimeout(context.Background(), d.config.DrainTimeout)
	defer cancel()
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- d.node.Drain(ctx) }()
	select {
	case err := <-done:
		if err != nil {
			return &exitError{code: exitDrain, err: fmt.Errorf("%w after %d ms; what was left was cut off", err, time.Since(began).Milliseconds())}
		}
		fmt.Fprintf(d.stdout, "stopped after %d ms\n", time.Since(began).Milliseconds())
		return nil
	case <-d.signals:
		return &exitError{code: exitForced, err: errors.New("stopped at once by a second signal")}
	}
}

func (d *daemon) close() {
	for i := len(d.closers) - 1; i >= 0; i-- {
		d.closers[i]()
	}
}

func (d *daemon) onClose(f func()) { d.closers = append(d.closers, f) }

func (d *daemon) openData(context.Context) error {
	data, err := openDataDir(d.config.DataDir)
	if err != nil {
		return &exitError{code: exitDataDir, err: err}
	}
	d.data = data
	d.onClose(data.close)
	d.identity, err = loadIdentity(data, []string{d.config.Listen, d.config.API, d.config.HTTP}, time.Now())
	if err != nil {
		return &exitError{code: exitDataDir, err: err}
	}
	return nil
}

// startCatalog reads the catalog, or makes it with what everybody finds in a new one.
func (d *daemon) startCatalog(ctx context.Context) error {
	epoch, err := store.NewEpoch(rand.Reader)
	if err != nil {
		return err
	}
	options := store.MemoryOptions{Epoch: epoch, Capabilities: store.Capabilities{Durable: d.config.Durable.enabled()}}
	d.catalog, err = catalogfile.Open(ctx, catalogfile.Options{FS: d.data.files, Store: options, Seed: seed})
	var damage *catalogfile.DamageError
	switch {
	case errors.As(err, &damage):
		return &exitError{code: exitDamaged, err: fmt.Errorf("--data-dir %s: %w", d.data.path, err)}
	case err != nil:
		return &exitError{code: exitDataDir, err: fmt.Errorf("--data-dir %s: %w", d.data.path, err)}
	}
	return nil
}

func seed(ctx context.Context, catalog store.Store) error {
	if err := catalog.CreateTenant(ctx, model.Tenant{TenantID: devTenant, DisplayName: "Development"}); err != nil {
		return err
	}
	if err := catalog.CreateNamespace(ctx, model.Namespace{TenantID: devTenant, Namespace: devNamespace, DisplayName: "Default"}); err != nil {
		return err
	}
	for _, name := range devStreams {
		i, err := model.NewIncarnation(rand.Reader)
		if err != nil {
			return err
		}
		s, err := model.StreamSpec{Stream: name}.Record(devTenant, devNamespace, i)
		if err != nil {
			return err
		}
		if _, _, err := catalog.CreateStream(ctx, s); err != nil {
			return err
		}
	}
	for _, name := range devCaches {
		i, err := model.NewIncarnation(rand.Reader)
		if err != nil {
			return err
		}
		c, err := model.CacheSpec{Cache: name}.Record(devTenant, devNamespace, i)
		if err != nil {
			return err
		}
		if _, _, err := catalog.CreateCache(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// openListener opens the client socket before the node exists, so that its address is known.
func (d *daemon) openListener() error {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "felix_quic_connections_refused_total", Help: "Client connections refused before their handshake, by reason: limit, per_ip_limit."}, []string{"reason"})
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "felix_quic_handshake_failures_total", Help: "Client connections that ended before they were usable, by reason."}, []string{"reason"})
	d.registry.MustRegister(refused, failures)
	windows := transport.NewWindowBudget(windowBudget)
	listener, err := transport.Listen(transport.ListenOptions{
		Addr:           d.config.Listen,
		TLS:            transport.ServerTLS(d.identity.certs, transport.Policy{RequireALPN: d.config.RequireALPN, CipherSuites: d.config.CipherSuites}),
		QUIC:           transport.ServerQUIC(transport.ServerOptions{Windows: d.config.Windows, AllowWindow: windows.Allow}),
		ReceiveOffload: d.config.Offload, StatelessResetKey: d.identity.reset,
		MaxConnections: d.config.MaxConnections, MaxPerIP: d.config.MaxPerIP,
		OnRefused:         func(reason string) { refused.WithLabelValues(reason).Inc() },
		OnHandshakeFailed: func(reason string, _ error) { failures.WithLabelValues(reason).Inc() },
		OnEvent:           func(e transport.Event) { d.logger.Info(e.String(), "event", string(e.Kind)) },
	})
	if err != nil {
		return notListening("--listen", err)
	}
	d.listener = listener
	d.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_quic_receive_window_bytes", Help: "QUIC receive windows granted beyond what every connection starts with."}, func() float64 { return float64(windows.Used()) }))
	d.onClose(func() { _ = listener.Close() })
	return nil
}

// windowBudget bounds how far the receive windows of all client connections may grow together, in bytes.
const windowBudget = 512 << 20

func (d *daemon) startNode(ctx context.Context) error {
	if err := d.openListener(); err != nil {
		return err
	}
	options := node.Options{
		Clock: actors.RealClock(), Events: actors.SlogSink(d.logger), Logger: d.logger, Registerer: d.registry,
		Rand: randomSeed, Executors: d.config.executors(), Limits: d.config.Limits, TimingEvery: d.config.timingEvery(),
		Auth: authenticator{d.identity.verifier}, Brokers: advertised(d.listener.Addr()), AuthTimeout: d.config.AuthTimeout,
		Applied: func(version uint64) {
			select {
			case d.applied <- version:
			default:
			}
		},
	}
	d.storage.give(&options)
	n, err := node.New(options)
	if err != nil {
		return err
	}
	d.node = n
	d.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := n.Close(ctx); err != nil {
			d.logger.Error("stopping took too long", "error", err)
		}
	})
	go watch.Run(ctx, watch.Options{Feed: d.catalog, Changed: n.Apply, Logger: d.logger, Wait: pause})
	return nil
}

func pause(ctx context.Context, t time.Duration) {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func randomSeed() uint64 {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("felixd: the system's random source failed: " + err.Error())
	}
	return binary.BigEndian.Uint64(b[:])
}

// advertised is the address that clients are told, if it is one that they can dial.
func advertised(addr net.Addr) []wire.Broker {
	udp, ok := addr.(*net.UDPAddr)
	if !ok || udp.IP.IsUnspecified() || udp.IP.To4() == nil {
		return nil
	}
	return []wire.Broker{{NodeID: "dev", Addr: udp.String()}}
}

func (d *daemon) startClients(context.Context) error {
	return d.node.Listen(quicconn.NewAcceptor(d.listener, d.config.Limits.Delivery))
}

// startAPI serves the control plane's catalog routes over TLS.
func (d *daemon) startAPI(context.Context) error {
	o := api.Options{Store: d.catalog, Verifier: d.identity.verifier, Logger: d.logger, DurableSupported: d.config.Durable.enabled(), Ready: func() *api.Unready {
		if reason := d.ready.get(); reason == "draining" {
			return &api.Unready{Reason: reason, Message: "the daemon is shutting down"}
		}
		return nil
	}, Hosted: d.awaitHosted, Groups: d.groups}
	if o.DurableSupported {
		o.FsyncMode = d.config.Durable.Fsync.String()
	}
	handler, err := api.New(o)
	if err != nil {
		return err
	}
	server := api.Server(d.config.API, handler, transport.HTTPSTLS(d.identity.certs, transport.Policy{CipherSuites: d.config.CipherSuites}))
	addr, err := d.serve(server, "--api", true)
	d.dev.ControlPlane = "https://" + addr
	return err
}

// startHealth serves /live, /ready and /metrics: plain on loopback, TLS elsewhere. It comes first and goes last, so that
// probes are answered all the while.
func (d *daemon) startHealth(context.Context) error {
	d.registry = prometheus.NewRegistry()
	d.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	server := api.Server(d.config.HTTP, healthHandler(&d.ready, d.registry), nil)
	secure := !loopback(d.config.HTTP)
	scheme := "http://"
	if secure {
		scheme = "https://"
		server.TLSConfig = transport.HTTPSTLS(d.identity.certs, transport.Policy{CipherSuites: d.config.CipherSuites})
	}
	addr, err := d.serve(server, "--http", secure)
	d.dev.HTTP = scheme + addr
	return err
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// notListening says why an address cannot be listened on, and what to do if it is taken.
func notListening(flag string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; is another felixd running? Stop it, or name another address with %s", err, flag)
	}
	return &exitError{code: exitListen, err: fmt.Errorf("%s: %w", flag, err)}
}

// serve runs an HTTP server and returns the address that it got.
func (d *daemon) serve(server *http.Server, flag string, secure bool) (string, error) {
	l, err := net.Listen("tcp", server.Addr)
	if err != nil {
		return "", notListening(flag, err)
	}
	server.ErrorLog = slog.NewLogLogger(d.logger.Handler(), slog.LevelDebug)
	go func() {
		serve := server.Serve
		if secure {
			serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
		}
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.failed <- fmt.Errorf("%s: %w", flag, err)
		}
	}()
	d.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	})
	return l.Addr().String(), nil
}

// becomeReady tells clients how to reach what is served.
func (d *daemon) becomeReady() error {
	client, admin, err := d.identity.tokens(time.Now())
	if err != nil {
		return err
	}
	d.dev.ClientAddr, d.dev.TenantID, d.dev.Namespace = d.listener.Addr().String(), devTenant, devNamespace
	d.dev.ClientToken, d.dev.AdminToken, d.dev.CAFile = client, admin, d.data.file(caFile)
	text, err := json.MarshalIndent(d.dev, "", "  ")
	if err != nil {
		return err
	}
	if err := d.data.write(devFile, append(text, '\n'), 0o600); err != nil {
		return &exitError{code: exitDataDir, err: err}
	}
	d.ready.set("")
	return nil
}

func terminationText(x actors.Terminated) string {
	if x.Panic != nil {
		return x.Panic.Error()
	}
	return x.Reason.String()
}

// expired is a context that is over: whoever waits on it does not.
func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
