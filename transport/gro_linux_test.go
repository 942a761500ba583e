package transport

import (
	"bytes"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// socketOption sets an integer option on a socket of the test.
func socketOption(t *testing.T, conn *net.UDPConn, level, name, value int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var optErr error
	if err := raw.Control(func(fd uintptr) { optErr = unix.SetsockoptInt(int(fd), level, name, value) }); err != nil {
		t.Fatal(err)
	}
	if optErr != nil {
		t.Fatalf("set option %d/%d: %v", level, name, optErr)
	}
}

func udpOf(t *testing.T, conn batchReader) *net.UDPConn {
	t.Helper()
	switch c := conn.(type) {
	case *offloadConn:
		return c.UDPConn
	case *scatterConn:
		return c.UDPConn
	}
	t.Fatalf("a %T", conn)
	return nil
}

func ecnOf(t *testing.T, oob []byte) int {
	t.Helper()
	for len(oob) > 0 {
		header, body, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			t.Fatal(err)
		}
		if header.Level == unix.IPPROTO_UDP {
			t.Error("the segment size reached the library")
		}
		if header.Level == unix.IPPROTO_IP && header.Type == unix.IP_TOS {
			return int(body[0] & 3)
		}
		oob = rest
	}
	return -1
}

func TestJoinedDatagramsAreCutApartWithTheirECNMark(t *testing.T) {
	const segment, segments, tail, ect0 = 1200, 20, 77, 2
	conn, box, sender := opened(t, OffloadOn, nil)
	socketOption(t, udpOf(t, conn), unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
	socketOption(t, sender, unix.IPPROTO_IP, unix.IP_TOS, ect0)
	socketOption(t, sender, unix.IPPROTO_UDP, unix.UDP_SEGMENT, segment)
	var sent []byte
	for i := range segments {
		sent = append(sent, bytes.Repeat([]byte{byte(i + 1)}, segment)...)
	}
	sent = append(sent, bytes.Repeat([]byte{0xff}, tail)...)
	if _, err := sender.Write(sent); err != nil {
		t.Fatal(err)
	}
	var joined []byte
	for i, got := range receive(t, conn, segments+1) {
		want := segment
		if i == segments {
			want = tail
		}
		if len(got.data) != want || ecnOf(t, got.oob) != ect0 {
			t.Errorf("datagram %d: %d bytes, ECN %d", i, len(got.data), ecnOf(t, got.oob))
		}
		joined = append(joined, got.data...)
	}
	if !bytes.Equal(joined, sent) {
		t.Error("the bytes changed")
	}
	if stats := box.stats(); stats.Reads != 1 || stats.Datagrams != segments+1 {
		t.Errorf("counters %+v, want one read", stats)
	}
}

func TestEmptyDatagramsAreSkippedByTheOffload(t *testing.T) {
	conn, _, sender := opened(t, OffloadOn, nil)
	for _, data := range [][]byte{{}, {}, []byte("x")} {
		if _, err := sender.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if got := receive(t, conn, 1); string(got[0].data) != "x" {
		t.Errorf("got %q", got[0].data)
	}
}

func FuzzControlMessages(f *testing.F) {
	size := make([]byte, unix.CmsgSpace(4))
	f.Add(size)
	f.Add([]byte{20, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 104, 0, 0, 0, 0xb0, 4, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{20, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 104, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, control []byte) {
		if len(control) > controlBuffer {
			return
		}
		c := &offloadConn{inbox: &inbox{}, meta: make([]byte, 0, controlBuffer), segment: 10}
		if err := c.splitControl(control); err != nil {
			return
		}
		if c.segment < 1 {
			t.Errorf("segment %d would never end", c.segment)
		}
		if len(c.meta) > len(control) {
			t.Errorf("%d bytes of control became %d", len(control), len(c.meta))
		}
	})
}

// The sender hands the kernel many packets at once only if the library found segmentation offload through our wrapper; then
// a read with receive offload brings many as well.
func TestWrappedSocketKeepsSegmentationOffload(t *testing.T) {
	h := openHouse(t, Policy{}, func(o *ListenOptions) { o.ReceiveOffload = OffloadOn })
	o := h.options(t, ClientTLSOptions{})
	o.ReceiveOffload = OffloadOn
	client, server := h.connect(t, o)
	data := make([]byte, 4*mib)
	if got := echo(t, client, server, data); len(got) != len(data) {
		t.Fatalf("echo of %d bytes", len(got))
	}
	if stats := h.Stats(); stats.Datagrams < 2*stats.Reads {
		t.Errorf("counters %+v: each read brought about one datagram", stats)
	}
}
