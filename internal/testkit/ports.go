package testkit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
)

// Ports that systems do not give out by themselves: Linux begins at 32768, others above.
const (
	portsFrom = 10_000
	portsEnd  = 32_000
)

// FreePort is an address on loopback for a broker that is started again and again while the test goes: nobody listens on it just now, no other
// caller gets it, in whatever process, and the system does not give it to a socket that asks for any port. So it is still free when a broker
// comes back. network is tcp or udp.
func FreePort(t testing.TB, network string) string {
	t.Helper()
	var last error
	for range 1000 {
		port := portsFrom + rand.IntN(portsEnd-portsFrom)
		mine, release := claimPort(port)
		if !mine {
			continue
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if last = tryPort(network, addr); last != nil {
			release()
			continue
		}
		t.Cleanup(release)
		return addr
	}
	t.Fatalf("no %s port is free: %v", network, last)
	return ""
}

// claimPort takes a port until release: who has it listens on the same port of another loopback address, which only one can. Where a system has
// no such address, there is no claim, and what is left is that two hardly ever draw the same port.
func claimPort(port int) (mine bool, release func()) {
	claim, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.77:%d", port))
	switch {
	case err == nil:
		return true, func() { _ = claim.Close() }
	case errors.Is(err, syscall.EADDRINUSE):
		return false, nil
	}
	return true, func() {}
}

// tryPort reports why one can't listen at an address now.
func tryPort(network, addr string) error {
	if network == "udp" {
		c, err := net.ListenPacket("udp4", addr)
		if err != nil {
			return err
		}
		return c.Close()
	}
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		return err
	}
	return l.Close()
}
