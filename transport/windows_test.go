package transport

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// fill writes until the receiver's window is used up and returns how much went out. The window is full when a write of
// plenty makes no progress within a moment after at least want bytes went out.
func fill(t *testing.T, stream *quic.SendStream, want int) int {
	t.Helper()
	const moment = 200 * time.Millisecond
	chunk := make([]byte, 1<<20)
	deadline := time.Now().Add(patience)
	sent := 0
	for {
		_ = stream.SetWriteDeadline(time.Now().Add(moment))
		n, err := stream.Write(chunk)
		sent += n
		switch {
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			t.Fatal(err)
		case n == 0 && sent >= want:
			return sent
		case time.Now().After(deadline):
			t.Fatalf("only %d of %d bytes went out", sent, want)
		}
	}
}

// slack is what a writer may have buffered beyond what was sent: less than a packet per stream.
const slack = packetBuffer

// mission 193, 197: what a peer has sent and nobody has read is bounded per stream and per connection.
func TestUnreadDataIsBoundedByTheWindows(t *testing.T) {
	w := Windows{StreamInitial: 64 * kib, StreamMax: 256 * kib, ConnInitial: 160 * kib, ConnMax: 1 * mib}
	h := openHouse(t, Policy{}, func(o *ListenOptions) { o.QUIC = ServerQUIC(ServerOptions{Windows: w}) })
	client, server := h.connect(t, h.options(t, ClientTLSOptions{}))

	var streams [3]*quic.SendStream
	total := 0
	for i := range streams {
		streams[i] = must[*quic.SendStream](t)(client.OpenUniStreamSync(within(t)))
		want := min(int(w.StreamInitial), int(w.ConnInitial)-total)
		sent := fill(t, streams[i], want)
		if sent > want+slack {
			t.Errorf("stream %d: %d bytes went out, the window left %d", i, sent, want)
		}
		total += min(sent, want)
	}
	// A reader of one stream gives credit back, so that its sender goes on.
	reader := must[*quic.ReceiveStream](t)(server.AcceptUniStream(within(t)))
	if _, err := io.ReadFull(reader, make([]byte, w.StreamInitial)); err != nil {
		t.Fatal(err)
	}
	fill(t, streams[0], int(w.StreamInitial)/2)
}

// mission 194, 195, 196: the same holds for events towards a client.
func TestUnreadEventsAreBoundedByTheClientsWindows(t *testing.T) {
	w := must[Windows](t)(DefaultClientWindows().WithMax(96*kib, 128*kib))
	h := openHouse(t, Policy{})
	o := h.options(t, ClientTLSOptions{})
	o.QUIC = ClientQUIC(ClientOptions{Windows: w})
	_, server := h.connect(t, o)
	first := must[*quic.SendStream](t)(server.OpenUniStreamSync(within(t)))
	if sent := fill(t, first, 96*kib); sent > 96*kib+slack {
		t.Errorf("%d bytes of one stream went out", sent)
	}
	second := must[*quic.SendStream](t)(server.OpenUniStreamSync(within(t)))
	if sent := fill(t, second, 32*kib); sent > 32*kib+slack {
		t.Errorf("%d bytes of the second stream went out", sent)
	}
}

// mission 192: a reader that stops holds up nobody else.
func TestOneStalledStreamLeavesTheOthersFlowing(t *testing.T) {
	h := openHouse(t, Policy{})
	client, server := h.connect(t, h.options(t, ClientTLSOptions{}))
	stalled := must[*quic.SendStream](t)(client.OpenUniStreamSync(within(t)))
	fill(t, stalled, int(DefaultServerWindows().StreamInitial))
	go echoOne(server)
	if got := ask(t, client, "through"); got != "through" {
		t.Errorf("answered %q", got)
	}
}

// mission 192: and events that nobody reads hold up neither the others nor the answers on a client's connection, from its first moment on.
func TestEventsThatNobodyReadsLeaveAClientsConnectionFlowing(t *testing.T) {
	h := openHouse(t, Policy{})
	client, server := h.connect(t, h.options(t, ClientTLSOptions{}))
	for range 6 {
		events := must[*quic.SendStream](t)(server.OpenUniStreamSync(within(t)))
		if sent := fill(t, events, 256*kib); sent < 256*kib {
			t.Errorf("%d bytes went out", sent)
		}
	}
	go echoOne(server)
	if got := ask(t, client, "through"); got != "through" {
		t.Errorf("answered %q", got)
	}
}

func TestDefaultWindowsAreTheDocumentedOnes(t *testing.T) {
	server, client := DefaultServerWindows(), DefaultClientWindows()
	if server.StreamMax != 2<<20 || server.ConnMax != 8<<20 {
		t.Errorf("server maxima %+v", server)
	}
	if client.StreamMax != 64<<20 || client.ConnMax != 256<<20 { // mission 194, 195
		t.Errorf("client maxima %+v", client)
	}
	if got := client.Total(8); got != 2<<30 { // mission 198
		t.Errorf("8 connections hold %d", got)
	}
	if got := client.Total(-1); got != 0 {
		t.Errorf("no connections hold %d", got)
	}
	for _, w := range []Windows{server, client} {
		if err := w.check(); err != nil {
			t.Error(err)
		}
	}
}

func TestContradictoryWindowsAreRefused(t *testing.T) {
	got := must[Windows](t)(DefaultServerWindows().WithMax(16*kib, 64*kib))
	if got.StreamInitial != 16*kib || got.ConnInitial != 64*kib {
		t.Errorf("initial values stayed above their maxima: %+v", got)
	}
	if same := must[Windows](t)(got.WithMax(0, 0)); same != got {
		t.Errorf("0 changed something: %+v", same)
	}
	for _, c := range [][2]uint64{{16 * mib, 0}, {2 * mib, 1 * mib}, {1 << 62, 1 << 62}} {
		var bad *WindowError
		if _, err := DefaultServerWindows().WithMax(c[0], c[1]); !errors.As(err, &bad) {
			t.Errorf("stream %d, connection %d: got %v, want a *WindowError", c[0], c[1], err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("broken settings of our own did not panic")
		}
	}()
	ServerQUIC(ServerOptions{Windows: Windows{StreamInitial: 1}})
}

func TestWindowBudgetIsNeverExceededAndComesBackWithTheConnection(t *testing.T) {
	budget := NewWindowBudget(100)
	h := openHouse(t, Policy{})
	client, _ := h.connect(t, h.options(t, ClientTLSOptions{}))
	if !budget.Allow(client, 60) || !budget.Allow(client, 40) {
		t.Error("bytes that are left were not given")
	}
	if budget.Allow(client, 1) {
		t.Error("more was given than there is")
	}
	if budget.Used() != 100 || budget.Total() != 100 {
		t.Errorf("used %d of %d", budget.Used(), budget.Total())
	}
	Close(client, CloseShutdown)
	eventually(t, "the budget comes back", func() bool { return budget.Used() == 0 })
}

func TestConnectionWithoutBudgetKeepsItsFirstWindowAndStillWorks(t *testing.T) {
	asked := make(chan uint64, 64)
	w := Windows{StreamInitial: 16 * kib, StreamMax: 2 * mib, ConnInitial: 32 * kib, ConnMax: 8 * mib}
	budget := NewWindowBudget(0)
	h := openHouse(t, Policy{}, func(o *ListenOptions) {
		o.QUIC = ServerQUIC(ServerOptions{Windows: w, AllowWindow: func(conn *quic.Conn, delta uint64) bool {
			select {
			case asked <- delta:
			default:
			}
			return budget.Allow(conn, delta)
		}})
	})
	client, server := h.connect(t, h.options(t, ClientTLSOptions{}))
	data := make([]byte, 4*mib)
	if got := echo(t, client, server, data); len(got) != len(data) {
		t.Errorf("echo of %d bytes, want %d", len(got), len(data))
	}
	select {
	case <-asked:
	default:
		t.Error("the window never asked to grow: the test proves nothing")
	}
}
