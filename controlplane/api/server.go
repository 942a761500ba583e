package api

import (
	"crypto/tls"
	"net/http"
	"time"
)

// Bounds of a connection. A slow or silent peer costs a connection for these times and no longer.
const (
	headerBytesMax    = 64 << 10 // a token of 48 KiB fits with room to spare
	readHeaderTimeout = 5 * time.Second
	readTimeout       = RequestTimeout
	writeTimeout      = RequestTimeout + 5*time.Second // the answer to a request that used all its time still leaves
	idleTimeout       = 2 * time.Minute
)

// Server returns the HTTP server of a handler with the bounds of this API. With a TLS configuration, which is copied,
// it speaks TLS 1.3 or better: serve it with ListenAndServeTLS or ServeTLS. Nil means plain HTTP, which callers choose
// by an explicit switch only. The caller starts it and shuts it down.
func Server(addr string, handler http.Handler, config *tls.Config) *http.Server {
	if config != nil {
		config = config.Clone()
		config.MinVersion = max(config.MinVersion, tls.VersionTLS13)
	}
	return &http.Server{
		Addr:              addr,
		Handler:           handler,
		TLSConfig:         config,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
	}
}
