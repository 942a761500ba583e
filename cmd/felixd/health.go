package main

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readiness is what /ready says: the reason why the daemon is out of rotation, or nothing.
type readiness struct{ reason atomic.Pointer[string] }

func (r *readiness) set(reason string) { r.reason.Store(&reason) }

// get is "" when the daemon is ready.
func (r *readiness) get() string {
	if p := r.reason.Load(); p != nil {
		return *p
	}
	return "starting"
}

// healthHandler serves /live, /ready and /metrics. Liveness depends on nothing but the process.
func healthHandler(ready *readiness, gatherer prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if reason := ready.get(); reason != "" {
			http.Error(w, reason, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html><title>felixd</title><h1>felixd</h1><ul><li><a href=/live>/live</a> the process runs<li><a href=/ready>/ready</a> clients are served<li><a href=/metrics>/metrics</a> Prometheus metrics</ul>")
	})
	return mux
}
