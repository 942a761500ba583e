package transport

import (
	"net"

	"golang.org/x/net/ipv4"
)

// scatterConn is a UDP socket whose batched reads take large opening datagrams whole. It is a *net.UDPConn in every other
// respect, which lets the QUIC library keep segmentation offload and ECN. Each read fills the library's buffer first and
// spills into a second one, so usual datagrams are not copied.
type scatterConn struct {
	*net.UDPConn
	inbox *inbox

	batch    *ipv4.PacketConn
	messages []ipv4.Message
	spill    [][]byte
}

func newScatterConn(conn *net.UDPConn, box *inbox) *scatterConn {
	return &scatterConn{UDPConn: conn, inbox: box, batch: ipv4.NewPacketConn(conn)}
}

// ReadBatch reads up to len(ms) datagrams with one system call where the platform can. The library calls it from one
// goroutine.
func (c *scatterConn) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	c.grow(len(ms))
	for i := range ms {
		c.messages[i].Buffers[0] = ms[i].Buffers[0]
		c.messages[i].OOB = ms[i].OOB
	}
	n, err := c.batch.ReadBatch(c.messages[:len(ms)], flags)
	if err != nil {
		return 0, err
	}
	c.inbox.reads.Add(1)
	for i := range n {
		c.take(&ms[i], &c.messages[i])
	}
	return n, nil
}

// take hands a received message on. Only one that spilled is put together; in the others the data is in place already.
func (c *scatterConn) take(out, in *ipv4.Message) {
	out.NN, out.Flags, out.Addr = in.NN, in.Flags, in.Addr
	first := in.Buffers[0]
	if in.N <= len(first) {
		out.N = in.N
		c.inbox.datagrams.Add(1)
		return
	}
	whole := append(append([]byte(nil), first...), in.Buffers[1][:in.N-len(first)]...)
	c.inbox.deliver(out, whole, false)
}

// grow makes room for as many messages as the library asks for, a small constant of its own (8 on Linux). A spill has one
// byte to spare: a datagram that fills it is larger than any that is taken whole.
func (c *scatterConn) grow(n int) {
	for len(c.messages) < n {
		spill := make([]byte, maxFirstFlight-packetBuffer+1)
		c.spill = append(c.spill, spill)
		c.messages = append(c.messages, ipv4.Message{Buffers: [][]byte{nil, spill}})
	}
}
