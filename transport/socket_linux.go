package transport

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// grantedBuffers asks the kernel for the sizes in force, in bytes. Linux reports twice what it grants to data, the other
// half being its own bookkeeping (socket(7), SO_RCVBUF).
func grantedBuffers(conn *net.UDPConn) (receive, send int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var receiveErr, sendErr error
	err = raw.Control(func(fd uintptr) {
		receive, receiveErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		send, sendErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	})
	return receive / 2, send / 2, errors.Join(err, receiveErr, sendErr)
}
