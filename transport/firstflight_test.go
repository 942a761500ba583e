package transport

import (
	"context"
	"net"
	"testing"

	"github.com/quic-go/quic-go"
)

// gluingLink is a path between a client and a broker on which the client's two opening packets arrive as one datagram, as
// they do from clients that start with a large path MTU. Every later datagram that starts with an opening packet is lost,
// so that a handshake through it succeeds only when the large one was understood.
type gluingLink struct {
	client, broker *net.UDPConn
}

func newGluingLink(t *testing.T, to net.Addr) *gluingLink {
	t.Helper()
	link := &gluingLink{
		client: must[*net.UDPConn](t)(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})),
		broker: must[*net.UDPConn](t)(net.DialUDP("udp4", nil, to.(*net.UDPAddr))),
	}
	t.Cleanup(func() { link.client.Close(); link.broker.Close() })
	go link.forward()
	return link
}

func opens(packet []byte) bool { return packet[0]&0xf0 == 0xc0 } // a long header of type Initial, RFC 9000 17.2.2

func (l *gluingLink) forward() {
	var glued []byte
	var from net.Addr
	buf := make([]byte, 1<<16)
	for range 2 {
		n, addr, err := l.client.ReadFrom(buf)
		if err != nil {
			return
		}
		glued, from = append(glued, buf[:n]...), addr
	}
	_, _ = l.broker.Write(glued) // what is lost here shows as a handshake that fails
	go l.backward(from)
	for {
		n, _, err := l.client.ReadFrom(buf)
		if err != nil {
			return
		}
		if !opens(buf[:n]) {
			_, _ = l.broker.Write(buf[:n])
		}
	}
}

func (l *gluingLink) backward(to net.Addr) {
	buf := make([]byte, 1<<16)
	for {
		n, err := l.broker.Read(buf)
		if err != nil {
			return
		}
		_, _ = l.client.WriteTo(buf[:n], to)
	}
}

func TestHandshakeSucceedsFromOneLargeOpeningDatagram(t *testing.T) {
	for _, mode := range []Offload{OffloadAuto, OffloadOff} {
		t.Run(mode.String(), func(t *testing.T) {
			h := openHouse(t, Policy{}, func(o *ListenOptions) { o.ReceiveOffload = mode })
			o := h.options(t, ClientTLSOptions{})
			o.Addr = newGluingLink(t, h.Addr()).client.LocalAddr().String()
			client := must[*quic.Conn](t)(dialFor(t, o))
			server := must[*quic.Conn](t)(h.Accept(within(t)))
			go echoOne(server)
			if got := ask(t, client, "whole"); got != "whole" {
				t.Errorf("answered %q", got)
			}
			if stats := h.Stats(); stats.LargeFlight != 1 || stats.Truncated != 0 {
				t.Errorf("counters %+v", stats)
			}
			Close(client, CloseShutdown)
			if err := context.Cause(client.Context()); err == nil {
				t.Error("the connection did not end")
			}
		})
	}
}
