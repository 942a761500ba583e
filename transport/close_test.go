package transport

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
)

func TestCloseCodeAndItsTextReachThePeer(t *testing.T) {
	h := openHouse(t, Policy{})
	o := h.options(t, ClientTLSOptions{})
	codes := []quic.ApplicationErrorCode{
		CloseShutdown, CloseAuthTimeout, CloseTooManyStreams, CloseProtocol, CloseCipherSuite, CloseRevoked, CloseOverload,
	}
	texts := map[string]bool{}
	for _, code := range codes {
		client, server := h.connect(t, o)
		cause := errors.New("internal detail")
		if err := CloseWith(server, code, cause); !errors.Is(err, cause) {
			t.Errorf("code %d: the cause became %v", code, err)
		}
		wantClose(t, ended(t, client), code)
		texts[closeReason(code)] = true
	}
	if len(texts) != len(codes) || texts[""] {
		t.Errorf("texts %v, want one for each code", texts)
	}
	if closeReason(CloseAuthTimeout) != "authentication timeout" { // fixed by the client protocol, as is the number
		t.Error("the text of the authentication timeout changed")
	}
	if CloseShutdown != 0 || CloseAuthTimeout != 1 {
		t.Error("the numbers of the client protocol changed")
	}
	if closeReason(99) != "" {
		t.Error("a foreign code has a text")
	}
	if _, _, ok := CloseCode(io.EOF); ok {
		t.Error("an end without code has one")
	}
}

func TestErrorsSayWhatWasDoneWhatIsWrongAndWhatToDo(t *testing.T) {
	cause := errors.New("the cause")
	for _, c := range []struct {
		err  error
		want []string
	}{
		{&CertError{Op: "parse CA", Advice: "replace it", Err: cause}, []string{"parse CA", "the cause", "replace it"}},
		{&DialError{Addr: "h:1", Kind: DialTLS, Err: cause}, []string{"dial h:1", "tls", "the cause", "CA file"}},
		{&ListenError{Addr: "h:1", Err: cause}, []string{"listen on h:1", "the cause"}},
		{&OffloadError{Err: cause}, []string{"receive offload", "the cause", "use auto or off"}},
		{&RefusedError{Reason: RefusedPerIP, Addr: netip.MustParseAddr("10.0.0.1"), Max: 3}, []string{"10.0.0.1", RefusedPerIP, "3"}},
		{&CipherError{Suite: 0x1301, Allowed: []uint16{0x1302}}, []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"}},
		{&SubjectError{Subjects: []string{"alice"}, Names: []string{"bob"}}, []string{"alice", "bob", "use the token"}},
		{&SubjectError{Subjects: []string{"alice"}}, []string{"nobody"}},
		{&WindowError{Problem: "too small"}, []string{"receive windows", "too small"}},
	} {
		for _, part := range c.want {
			if !strings.Contains(c.err.Error(), part) {
				t.Errorf("%T says %q, without %q", c.err, c.err, part)
			}
		}
		if inner := errors.Unwrap(c.err); inner != nil && !errors.Is(c.err, cause) {
			t.Errorf("%T hides its cause", c.err)
		}
	}
	silent := Event{Kind: EventTruncated, Addr: "a:1", Detail: "cut"}
	if got := silent.String(); !strings.Contains(got, "a:1") || strings.HasSuffix(got, ": ") {
		t.Errorf("event prints %q", got)
	}
}
