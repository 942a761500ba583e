// Package api serves the catalog of the control plane over HTTP: tenants, namespaces, streams and caches, and the
// system routes that say whether this instance lives and is ready.
//
// Every request passes the same checks in the same order, and the order is a promise: a caller without rights learns
// nothing about what exists.
//
//  1. token present and well formed, signature, issuer, audience, tenant, times   401
//  2. permission over the object                                                  403
//  3. body and query                                                              400, 413
//  4. existence and state                                                         404, 409
//
// A body that creates something names the object in itself, so for creates the second check takes two steps: some right
// in the namespace before the body is read, the right over the named object before the rest of the body is judged.
package api

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/felixd/felixd/controlplane/auth"
	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

// Options configures the API.
type Options struct {
	// Store holds the catalog. Required.
	Store store.Store
	// Verifier judges tokens. Required.
	Verifier *auth.Verifier
	// Clock says what time it is, for tokens and elapsed times; nil means time.Now.
	Clock func() time.Time
	// Random draws incarnations; nil means the system's source of random bytes. It must be safe for concurrent use.
	Random io.Reader
	// Logger takes what operators should know; nil discards it. No token ever reaches it.
	Logger *slog.Logger
	// DurableSupported says that the brokers have storage; without it a stream that asks to be durable is refused.
	DurableSupported bool
	// FsyncMode is the brokers' way of making records durable, told with each durable stream; empty: it is not known, and not told.
	FsyncMode string
	// Hosted, when not nil, waits until the brokers serve what was created, so that it can be used at once; for a bounded time, after which
	// the answer says no less that it was created.
	Hosted func(ctx context.Context, kind model.ResourceKind, name model.ResourceName)
	// Groups tells the names of the consumer groups of a stream, at most so many, in their order; nil: there are none to be told. Its error is
	// answered as one of the brokers.
	Groups func(ctx context.Context, stream model.ResourceName, most int) ([]string, error)
	// Ready says what keeps this instance from serving, nil when nothing does. It must answer within a second or so, and
	// draining comes before anything else. A nil Ready means always ready.
	Ready func() *Unready
	// Observe is told about every request after its answer; nil means nobody counts.
	Observe func(Observation)
	// InFlightMax bounds the requests served at one time, system routes not counted; zero means InFlightMax.
	InFlightMax int
}

// InFlightMax is how many requests are served at one time unless Options says otherwise. Each may hold a body of
// BodyBytesMax, so 256 of them hold 256 MiB at the very worst; one more is told to come back.
const InFlightMax = 256

// Observation is one answered request, for counters and histograms.
type Observation struct {
	Method  string // "other" for methods no route has
	Route   string // the pattern, never the path, so that labels stay few; "unknown" where none matched
	Status  int
	Elapsed time.Duration
}

// New returns the handler of the API, or an error that says which option is missing. Answers of 1 KiB and more are
// compressed for clients that accept it.
func New(o Options) (http.Handler, error) {
	switch {
	case o.Store == nil:
		return nil, errors.New("new api: no store given")
	case o.Verifier == nil:
		return nil, errors.New("new api: no verifier given")
	case o.InFlightMax < 0:
		return nil, errors.New("new api: InFlightMax is negative")
	}
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(1024))
	if err != nil {
		return nil, err
	}
	a := newAPI(o)
	return compress(a.guard(a.routes())), nil
}

// api is the state behind the handlers. It never changes after newAPI.
type api struct {
	Options
	capabilities store.Capabilities
	inFlight     chan struct{} // one token per request being served
}

func newAPI(o Options) *api {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Ready == nil {
		o.Ready = func() *Unready { return nil }
	}
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	if o.InFlightMax == 0 {
		o.InFlightMax = InFlightMax
	}
	return &api{
		Options:      o,
		capabilities: store.Capabilities{Durable: o.DurableSupported},
		inFlight:     make(chan struct{}, o.InFlightMax),
	}
}
