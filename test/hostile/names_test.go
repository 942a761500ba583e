package hostile

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/felixd/felixd/wire"
)

// badNames are what somebody may try as a name. All of them are valid UTF-8.
func badNames() []string {
	return []string{
		"", ".", "..", "../x", "/etc/x", "a/b", `a\b`, "a\x00b", "CON", "a.", "a ", " a", "%2e%2e", "*", ":", "a\nb", "a\rb", "a\x1b[31m", "\u202e", "\u00e9", "e\u0301",
		"\U0001F600", "Orders", "ORDERS", "orders ", "orders\x00", strings.Repeat("n", 128), strings.Repeat("n", 129), strings.Repeat("n", 255),
		strings.Repeat("n", 256), strings.Repeat("n", 60_000), strings.Repeat("\u0301", 100_000),
	}
}

// notUTF8 are byte strings that are no text: bytes that never occur, over-long forms, lone surrogates, characters cut short.
func notUTF8() []string {
	return []string{"\xff", "a\xffb", "\xc0\x80", "\xe0\x80\xaf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xe2\x82", "\xf8\x88\x80\x80\x80"}
}

// askWith makes one request for each way to name something.
func askWith(name string) []wire.Message {
	return []wire.Message{
		&wire.Subscribe{TenantID: tenant, Namespace: namespace, Stream: name}, &wire.Subscribe{TenantID: tenant, Namespace: name, Stream: "orders"},
		&wire.Subscribe{TenantID: name, Namespace: namespace, Stream: "orders"}, &wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: name, Key: "k"},
		&wire.CachePut{TenantID: tenant, Namespace: name, Cache: "users", Key: "k", Value: []byte("v")}, &wire.CacheDelete{TenantID: name, Namespace: namespace, Cache: "users", Key: "k"},
	}
}

// binaryTo is an acked binary publish to any names, as long as their lengths fit.
func binaryTo(tenant, namespace, stream string, id uint64) []byte {
	body := append(binary.BigEndian.AppendUint64(nil, id), 2)
	for _, name := range []string{tenant, namespace, stream} {
		body = append(binary.BigEndian.AppendUint16(body, uint16(len(name))), name...)
	}
	body = append(binary.BigEndian.AppendUint32(body, 1), 0, 0, 0, 1, 'x')
	return append(wire.AppendHeader(nil, wire.Header{Flags: 0x0009, Length: uint32(len(body))}), body...)
}

// field case PRO-03 on the client protocol: a name that is none is refused by type, whatever the request, and nothing is made.
func TestPRO03_NamesOnTheWireAreRefusedByType(t *testing.T) {
	aside(t)
	h := open(t, setup{})
	l := h.from(t, 11).dial().open()
	before := h.Look().Metrics
	for _, name := range badNames() {
		for _, m := range askWith(name) {
			f := l.ask(m)
			if r := f.refusal(); r == nil || r.Code != wire.CodeInvalidRequest && r.Code != wire.CodeNotFound && r.Code != wire.CodeForbidden {
				t.Errorf("%.40q in %s: %s", name, m.MessageType(), f)
			}
			if !utf8.Valid(f.payload) || len(f.payload) > 8<<10 {
				t.Errorf("%.40q in %s: an answer of %d bytes: %s", name, m.MessageType(), len(f.payload), f)
			}
		}
		if len(name) > 65535 {
			continue // does not fit the layout
		}
		for i, b := range [][]byte{binaryTo(name, namespace, "orders", 1), binaryTo(tenant, name, "orders", 2), binaryTo(tenant, namespace, name, 3)} {
			l.raw(b)
			if f := l.next(); f.ack.RequestID != uint64(i+1) || f.ack.Refusal == nil {
				t.Errorf("%.40q in a binary publish: %s", name, f)
			}
		}
	}
	l.alive("after all names")
	s := h.Look()
	for name, n := range s.Metrics {
		if strings.HasPrefix(name, "felix_published") && n != before[name] {
			t.Errorf("%s grew from %v to %v", name, before[name], n)
		}
	}
}

// field case PRO-04: what is no UTF-8 is refused where text is asked for, in every form that carries bytes; keys of a publish and
// payloads are bytes and come back as they were.
func TestPRO04_InvalidUTF8DoesNotCrashEitherSide(t *testing.T) {
	aside(t)
	h := open(t, setup{})
	p := h.from(t, 11).dial()
	l := p.open()
	for _, bad := range notUTF8() {
		for _, member := range []string{"tenant_id", "namespace", "cache", "key", "unknown", "type"} {
			text := `{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"users","key":"k","unknown":"u"}`
			at := strings.Index(text, `"`+member+`":"`) + len(member) + 4
			refusedCleanly(t, l, text[:at]+bad+text[at:])
		}
		for i, b := range [][]byte{binaryTo(bad, namespace, "orders", 1), binaryTo(tenant, bad, "orders", 2), binaryTo(tenant, namespace, bad, 3)} {
			l.raw(b)
			if f := l.next(); f.ack.RequestID != uint64(i+1) || f.ack.Refusal == nil || f.ack.Refusal.Code != wire.CodeInvalidRequest || !utf8.ValidString(f.ack.Refusal.Message) {
				t.Errorf("%q in a binary publish: %s", bad, f)
			}
		}
		early := p.bare()
		early.raw(jsonFrame(`{"type":"auth","tenant_id":"t1","token":"` + bad + `"}`))
		if f := early.next(); f.refusal() == nil || !utf8.Valid(f.payload) {
			t.Errorf("%q as a token: %s", bad, f)
		}
		early.finish()
	}
	for _, escaped := range []string{`\ud800`, `\udfff`, `\ud800\ud800`, `\ud83d`, `\x41`, `\u12`, `\`} {
		refusedCleanly(t, l, `{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"`+escaped+`","key":"k"}`)
	}
	bytesComeBack(t, h, l)
}

// refusedCleanly requires a refusal that is itself well-formed.
func refusedCleanly(t *testing.T, l *line, text string) {
	t.Helper()
	l.raw(jsonFrame(text))
	f := l.next()
	_, unsupported := f.message.(*wire.Unsupported)
	if f.refusal() == nil && !unsupported || !utf8.Valid(f.payload) {
		t.Errorf("%.120q was answered %s", text, f)
	}
}

// bytesComeBack: routing keys and payloads are any bytes.
func bytesComeBack(t *testing.T, h *house, l *line) {
	t.Helper()
	c := h.connect(t)
	sub := must(c.Subscribe(t.Context(), namespace, "other", clientEarliest()))(t)
	for i, bad := range notUTF8() {
		pub := &wire.Publish{
			Flags: 0x0049, RequestID: uint64(i), Ack: wire.AckPerBatch, Keyed: true, Key: []byte(bad), Tenant: []byte(tenant), Namespace: []byte(namespace),
			Stream: []byte("other"), Count: 1, Region: wire.AppendPayload(nil, []byte(bad)),
		}
		l.raw(wire.AppendPublish(nil, pub))
		if f := l.next(); f.ack.RequestID != uint64(i) || f.ack.Refusal != nil {
			t.Errorf("a key %q was refused: %s", bad, f)
		}
		e := must(sub.Next(t.Context()))(t)
		if string(e.Payload) != bad {
			t.Errorf("published %q, read %q", bad, e.Payload)
		}
	}
	l.alive("after all bytes")
}
