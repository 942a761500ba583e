// Package local runs a broker inside a demo: the real node behind a real QUIC listener on a loopback port that the system
// chooses, with an authority, a tenant and a token of its own. Nothing is written to disk and nothing is left when it is closed. Durable runs one
// in a process of its own over a folder, which a demo may kill and start again.
package local
