package transport

import (
	"crypto/tls"
	"testing"

	"github.com/quic-go/quic-go"
)

// dialOffering dials with exactly this list of protocols, also ones that ClientTLS would not offer.
func dialOffering(t *testing.T, h *house, protocols ...string) (*quic.Conn, error) {
	t.Helper()
	o := h.options(t, ClientTLSOptions{})
	o.TLS.NextProtos = protocols
	return dialFor(t, o)
}

func negotiated(conn *quic.Conn) string { return conn.ConnectionState().TLS.NegotiatedProtocol }

// mission 8: none is negotiated with a client that offers none.
func TestALPNIsNegotiatedOnlyWithAClientThatOffersIt(t *testing.T) {
	cases := []struct {
		name  string
		offer []string
		want  string
	}{
		{"nothing offered, nothing negotiated", nil, ""},
		{"felix/1 offered", []string{"felix/1"}, "felix/1"},
		{"felix/1 among others", []string{"h3", "felix/1"}, "felix/1"},
	}
	h := openHouse(t, Policy{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			client := must[*quic.Conn](t)(dialOffering(t, h, c.offer...))
			server := must[*quic.Conn](t)(h.Accept(within(t)))
			for _, conn := range []*quic.Conn{client, server} {
				if got := negotiated(conn); got != c.want {
					t.Errorf("negotiated %q, want %q", got, c.want)
				}
			}
		})
	}
}

// mission 9: the client port and the port between brokers cannot be mistaken for each other.
func TestForeignALPNFailsInTheHandshake(t *testing.T) {
	failures := new(recorder)
	h := openHouse(t, Policy{}, countFailures(failures))
	for i, offer := range [][]string{{ALPNInternal}, {"h3"}, {"h3", ALPNInternal}} {
		_, err := dialOffering(t, h, offer...)
		wantDialKind(t, err, DialALPN)
		failures.wait(t, FailedALPN, i+1)
	}
	if open, _ := h.Connections(); open != 0 {
		t.Errorf("%d connections hold a place after failed handshakes", open)
	}
}

// mission 9
func TestInternalListenerTakesOnlyItsOwnProtocol(t *testing.T) {
	failures := new(recorder)
	h := openHouse(t, Policy{RequireALPN: true, Protocols: []string{ALPNInternal}}, countFailures(failures))
	for i, offer := range [][]string{nil, {ALPNClient}} {
		_, err := dialOffering(t, h, offer...)
		wantDialKind(t, err, DialALPN)
		failures.wait(t, FailedALPN, i+1)
	}
	client := must[*quic.Conn](t)(dialFor(t, h.options(t, ClientTLSOptions{Protocols: []string{ALPNInternal}})))
	if got := negotiated(client); got != ALPNInternal {
		t.Errorf("negotiated %q", got)
	}
}

func TestRequiredALPNRefusesAClientWithoutOffer(t *testing.T) {
	h := openHouse(t, Policy{RequireALPN: true})
	_, err := dialFor(t, h.options(t, ClientTLSOptions{}))
	wantDialKind(t, err, DialALPN)
	client := must[*quic.Conn](t)(dialFor(t, h.options(t, ClientTLSOptions{OfferALPN: true})))
	if got := negotiated(client); got != ALPNClient {
		t.Errorf("negotiated %q", got)
	}
}

func TestHTTPSOffersHTTPOverTLS13(t *testing.T) {
	ca := newTestCA(t)
	c := HTTPSTLS(issueSource(t, ca, LeafRequest{Names: []string{"localhost"}}), Policy{})
	if c.MinVersion != tls.VersionTLS13 {
		t.Errorf("minimum version %x", c.MinVersion)
	}
	for _, want := range []string{"h2", "http/1.1"} {
		if state := pipeHandshake(t, c, &tls.Config{RootCAs: pool(t, ca), ServerName: "localhost", NextProtos: []string{want}}); state.NegotiatedProtocol != want {
			t.Errorf("negotiated %q, want %q", state.NegotiatedProtocol, want)
		}
	}
}

func countFailures(r *recorder) change {
	return func(o *ListenOptions) { o.OnHandshakeFailed = func(reason string, _ error) { r.add(reason) } }
}
