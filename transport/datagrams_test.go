package transport

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/ipv4"
)

// batchReader is what the QUIC library looks for in a socket.
type batchReader interface {
	quic.OOBCapablePacketConn
	ReadBatch(ms []ipv4.Message, flags int) (int, error)
}

// opened is a wrapped socket and a plain one that sends to it.
func opened(t *testing.T, mode Offload, report func(Event)) (batchReader, *inbox, *net.UDPConn) {
	t.Helper()
	udp := must[*net.UDPConn](t)(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	if err := udp.SetReadBuffer(4 << 20); err != nil {
		t.Fatal(err)
	}
	if err := udp.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	box := &inbox{addr: "test", report: report}
	wrapped := must[quic.OOBCapablePacketConn](t)(wrapSocket(udp, mode, box))
	sender := must[*net.UDPConn](t)(net.DialUDP("udp4", nil, udp.LocalAddr().(*net.UDPAddr)))
	t.Cleanup(func() { udp.Close(); sender.Close() })
	reader, ok := wrapped.(batchReader)
	if !ok {
		t.Fatalf("%T does not read batches: the library would pass it by", wrapped)
	}
	return reader, box, sender
}

func libraryMessages() []ipv4.Message {
	ms := make([]ipv4.Message, 8)
	for i := range ms {
		ms[i].Buffers = [][]byte{make([]byte, packetBuffer)}
		ms[i].OOB = make([]byte, 128)
	}
	return ms
}

type arrival struct {
	data []byte
	oob  []byte
	from net.Addr
}

// receive reads until n datagrams came, the way the library does.
func receive(t *testing.T, conn batchReader, n int) []arrival {
	t.Helper()
	var got []arrival
	for len(got) < n {
		ms := libraryMessages()
		k, err := conn.ReadBatch(ms, 0)
		if err != nil {
			t.Fatalf("after %d datagrams: %v", len(got), err)
		}
		for _, m := range ms[:k] {
			if len(m.Buffers) != 1 {
				t.Fatalf("a message has %d buffers", len(m.Buffers))
			}
			got = append(got, arrival{bytes.Clone(m.Buffers[0][:m.N]), bytes.Clone(m.OOB[:m.NN]), m.Addr})
		}
	}
	return got
}

func datagram(first byte, size int) []byte {
	d := bytes.Repeat([]byte{byte(size), byte(size >> 8), 0x55}, size/3+1)[:size]
	if size > 0 {
		d[0] = first
	}
	return d
}

const (
	opening   = 0xc3 // long header, Initial
	following = 0x43 // short header
)

// A client on the same host opens with more than the library's buffers hold; it must be understood at once.
func TestLargeOpeningDatagramsArriveWholeAndOthersAreCutAndCounted(t *testing.T) {
	cases := []struct {
		first byte
		size  int
		want  int // bytes that arrive
	}{
		{following, 1, 1}, {opening, 1200, 1200}, {opening, packetBuffer, packetBuffer}, {following, packetBuffer, packetBuffer},
		{opening, packetBuffer + 1, packetBuffer + 1}, {opening, 4096, 4096}, {opening, maxFirstFlight, maxFirstFlight},
		{opening, maxFirstFlight + 1, packetBuffer}, {opening, 40000, packetBuffer}, {following, packetBuffer + 1, packetBuffer},
		{opening, 1557, 1557}, {following, 4096, packetBuffer}, {following, 20, 20},
	}
	for _, mode := range []Offload{OffloadAuto, OffloadOff} {
		t.Run(mode.String(), func(t *testing.T) {
			events := new(recorder)
			conn, box, sender := opened(t, mode, func(e Event) { events.add(string(e.Kind)) })
			for _, c := range cases {
				if _, err := sender.Write(datagram(c.first, c.size)); err != nil {
					t.Fatal(err)
				}
			}
			for i, got := range receive(t, conn, len(cases)) {
				c := cases[i]
				if want := datagram(c.first, c.size)[:c.want]; !bytes.Equal(got.data, want) {
					t.Errorf("datagram %d of %d bytes: %d arrived, want %d", i, c.size, len(got.data), c.want)
				}
				if got.from.String() != sender.LocalAddr().String() {
					t.Errorf("datagram %d came from %v", i, got.from)
				}
			}
			stats := box.stats()
			if stats.Datagrams != uint64(len(cases)) || stats.LargeFlight != 4 || stats.Truncated != 4 {
				t.Errorf("counters %+v", stats)
			}
			if events.count(string(EventLargeFirstFlight)) != 1 || events.count(string(EventTruncated)) != 1 {
				t.Errorf("events %v, want each kind once", events.seen)
			}
		})
	}
}

func TestOffloadModesParse(t *testing.T) {
	for _, mode := range []Offload{OffloadAuto, OffloadOn, OffloadOff} {
		if got := must[Offload](t)(ParseOffload(" " + mode.String())); got != mode {
			t.Errorf("%v parsed as %v", mode, got)
		}
	}
	if got := must[Offload](t)(ParseOffload("")); got != OffloadAuto {
		t.Errorf("empty parsed as %v", got)
	}
	if _, err := ParseOffload("yes"); err == nil {
		t.Error("yes was accepted")
	}
	if got := Offload(9).String(); got != "Offload(9)" {
		t.Errorf("unknown mode prints %q", got)
	}
}
