//go:build !linux

package transport

import (
	"errors"
	"net"

	"github.com/quic-go/quic-go"
)

func newOffloadConn(*net.UDPConn, *inbox) (quic.OOBCapablePacketConn, error) {
	return nil, errors.New("receive offload exists on Linux only")
}
