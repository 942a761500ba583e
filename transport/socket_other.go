//go:build !linux

package transport

import (
	"math"
	"net"
)

// grantedBuffers has no portable answer outside Linux: systems there refuse a size they cannot grant, so what was set is
// what is in force.
func grantedBuffers(*net.UDPConn) (receive, send int, err error) {
	return math.MaxInt, math.MaxInt, nil
}
