package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// echoOne answers one stream with what it read and ends both halves.
func echoOne(conn *quic.Conn) error {
	stream, err := conn.AcceptStream(context.Background())
	if err != nil {
		return err
	}
	defer FinishStream(stream)
	_, err = io.Copy(stream, stream)
	return err
}

func ask(t *testing.T, conn *quic.Conn, text string) string {
	t.Helper()
	stream := must[*quic.Stream](t)(conn.OpenStreamSync(within(t)))
	defer FinishStream(stream)
	if err := stream.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	return string(must[[]byte](t)(io.ReadAll(stream)))
}

// echo sends data through one stream and returns what comes back, reading while it writes.
func echo(t *testing.T, client, server *quic.Conn, data []byte) []byte {
	t.Helper()
	go echoOne(server)
	stream := must[*quic.Stream](t)(client.OpenStreamSync(within(t)))
	defer FinishStream(stream)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = stream.Write(data) // a failure shows as a short echo
		_ = stream.Close()
	}()
	_ = stream.SetReadDeadline(time.Now().Add(patience))
	got := must[[]byte](t)(io.ReadAll(stream))
	<-sent
	return got
}

func TestBulkEchoIsIdenticalWithAndWithoutReceiveOffload(t *testing.T) {
	data := make([]byte, 10<<20)
	chacha := rand.NewChaCha8([32]byte{1})
	_, _ = chacha.Read(data)
	for _, mode := range []Offload{OffloadAuto, OffloadOff} {
		t.Run(mode.String(), func(t *testing.T) {
			h := openHouse(t, Policy{}, func(o *ListenOptions) { o.ReceiveOffload = mode })
			o := h.options(t, ClientTLSOptions{})
			o.ReceiveOffload = mode
			client, server := h.connect(t, o)
			got := echo(t, client, server, data)
			if !bytes.Equal(got, data) {
				t.Fatalf("sent %d bytes, got %d, or others", len(data), len(got))
			}
			stats := h.Stats()
			if stats.Truncated != 0 || stats.Datagrams == 0 || stats.Reads > stats.Datagrams {
				t.Errorf("counters: %+v", stats)
			}
			t.Logf("%s: %+v", mode, stats)
		})
	}
}

func TestClientMayHave1024StreamsOpenAtOnce(t *testing.T) {
	h := openHouse(t, Policy{})
	client, _ := h.connect(t, h.options(t, ClientTLSOptions{}))
	for i := range MaxStreams {
		if _, err := client.OpenStream(); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
	for i := range MaxUniStreams {
		if _, err := client.OpenUniStream(); err != nil {
			t.Fatalf("unidirectional stream %d: %v", i, err)
		}
	}
	var limit *quic.StreamLimitReachedError
	if _, err := client.OpenStream(); !errors.As(err, &limit) {
		t.Errorf("one stream too many: %v", err)
	}
}

func TestBrokerMayOpen4096EventStreamsAndNoRequestStream(t *testing.T) {
	h := openHouse(t, Policy{})
	_, server := h.connect(t, h.options(t, ClientTLSOptions{}))
	for i := range ClientMaxUniStreams {
		if _, err := server.OpenUniStream(); err != nil {
			t.Fatalf("event stream %d: %v", i, err)
		}
	}
	var limit *quic.StreamLimitReachedError
	if _, err := server.OpenStream(); !errors.As(err, &limit) {
		t.Errorf("a broker opened a request stream: %v", err)
	}
}

func TestFinishedStreamsGiveTheirCreditBack(t *testing.T) {
	const limit, rounds = 8, 5000
	h := openHouse(t, Policy{}, func(o *ListenOptions) { o.QUIC = ServerQUIC(ServerOptions{MaxStreams: limit}) })
	client, server := h.connect(t, h.options(t, ClientTLSOptions{}))
	go func() {
		for {
			stream, err := server.AcceptStream(context.Background())
			if err != nil {
				return
			}
			FinishStream(stream) // without reading what the client sent
			FinishStream(stream)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	for i := range rounds {
		stream, err := client.OpenStreamSync(ctx)
		if err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		if _, err := stream.Write([]byte("x")); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		FinishStream(stream)
	}
}

func TestAbortedStreamFailsOnTheOtherSide(t *testing.T) {
	h := openHouse(t, Policy{})
	client, server := h.connect(t, h.options(t, ClientTLSOptions{}))
	stream := must[*quic.Stream](t)(client.OpenStreamSync(within(t)))
	if _, err := stream.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	other := must[*quic.Stream](t)(server.AcceptStream(within(t)))
	AbortStream(other, 7)
	_ = stream.SetDeadline(time.Now().Add(patience))
	_, err := io.ReadAll(stream)
	var aborted *quic.StreamError
	if !errors.As(err, &aborted) || aborted.ErrorCode != 7 || !aborted.Remote {
		t.Errorf("read ended with %v", err)
	}
	FinishStream(stream)
}
