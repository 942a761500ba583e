package hostile

import (
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// foreignBytes are first words of other protocols.
func foreignBytes(t testing.TB) [][]byte {
	t.Helper()
	random := make([]byte, 4096)
	for i, rng := 0, rand.New(rand.NewPCG(2, 3)); i < len(random); i++ {
		random[i] = byte(rng.Uint32())
	}
	return [][]byte{
		[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), []byte("SSH-2.0-OpenSSH_9.6\r\n"),
		[]byte("*1\r\n$4\r\nPING\r\n"), clientHello(t), []byte("FLX1\x00\x01\x00\x00\xff\xff\xff\xff"), []byte("GET /" + strings.Repeat("a", 100_000)), random, {0}, {},
	}
}

// clientHello is the first record of a TLS client that asks for a version of long ago.
func clientHello(t testing.TB) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer func() { _ = a.Close(); _ = b.Close() }()
	go func() {
		_ = tls.Client(a, &tls.Config{ServerName: "x", MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}).Handshake()
	}()
	hello := make([]byte, 4096)
	_ = b.SetReadDeadline(time.Now().Add(patience))
	return hello[:must(b.Read(hello))(t)]
}

// field case PRO-02: bytes of other protocols, and one byte now and then, on every port that felixd has. Each connection is closed in
// time, the log stays short, and descriptors come back.
func TestPRO02_ArbitraryBytesOnAnyPortDoNoHarm(t *testing.T) {
	aside(t)
	const parallel = 50
	d := runDaemon(t)
	d.page("/ready")
	d.http.CloseIdleConnections()
	junk, n, before := foreignBytes(t), size("junk_connections"), d.files()
	ports := []string{strings.TrimPrefix(d.API, "https://"), strings.TrimPrefix(d.Health, "http://")}
	var slow sync.WaitGroup
	for _, port := range ports {
		for range 5 {
			slow.Go(func() { trickle(t, port) })
		}
	}
	var all sync.WaitGroup
	places := make(chan struct{}, parallel)
	for i := range n {
		for _, port := range ports {
			places <- struct{}{}
			all.Go(func() { defer func() { <-places }(); shout(t, port, junk[i%len(junk)]) })
		}
		datagram(t, d.Client, junk[i%len(junk)])
	}
	all.Wait()
	slow.Wait()
	if got := d.page("/live"); got != "ok\n" {
		t.Errorf("/live says %q", got)
	}
	if code, body := d.call("GET", "/v1/tenants/"+d.TenantID+"/namespaces", ""); code != 200 {
		t.Errorf("the API says %d %s", code, body)
	}
	d.http.CloseIdleConnections()
	eventually(t, "descriptors are back", func() bool { return d.files() <= before })
	if lines := strings.Count(d.said.String(), "\n"); lines > 20 {
		t.Errorf("%d lines in the log:\n%.2000s", lines, d.said)
	}
}

// shout sends something and stays until the other side has closed.
func shout(t testing.TB, port string, b []byte) {
	c, err := net.Dial("tcp", port)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = c.Write(b)                                         // it may be cut off in the middle
	if len(b) < 2 || strings.HasPrefix(string(b), "GET / ") { // the latter is no junk for a port that speaks HTTP: it would wait for more
		_ = c.(*net.TCPConn).CloseWrite()
	}
	closes(t, c, patience, b)
}

// closes requires that the other side ends the connection.
func closes(t testing.TB, c net.Conn, within time.Duration, b []byte) {
	began := time.Now()
	_, err := io.Copy(io.Discard, io.LimitReader(c, 1<<20))
	if timedOut, ok := err.(net.Error); ok && timedOut.Timeout() || time.Since(began) > within {
		t.Errorf("after %.40q the connection was not closed in %v: %v", b, time.Since(began), err)
	}
}

// trickle sends the head of a request byte by byte: the port does not wait longer than for a silent client.
func trickle(t testing.TB, port string) {
	const limit = time.Minute
	c, err := net.Dial("tcp", port)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	began := time.Now()
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for range "GET / HTTP/1.1\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" {
			if _, err := c.Write([]byte("G")); err != nil {
				return
			}
			<-tick.C
		}
	}()
	_ = c.SetReadDeadline(time.Now().Add(limit))
	closes(t, c, limit, []byte("a trickle"))
	t.Logf("a trickle to %s was cut off after %v", port, time.Since(began).Round(time.Millisecond))
}

func datagram(t testing.TB, addr string, b []byte) {
	t.Helper()
	c := must(net.Dial("udp", addr))(t)
	_, _ = c.Write(b[:min(len(b), 1400)])
	_ = c.Close()
}
