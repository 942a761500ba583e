package wire

import (
	"fmt"
	"unicode/utf8"
)

// Message is one JSON message of the protocol, in either direction. All implementations are pointers to structs of
// this package; a decoded one owns all its bytes.
//
//sumtype:decl
type Message interface {
	// MessageType returns the value of the member type.
	MessageType() string
	// appendJSON appends the text of the message to dst.
	appendJSON(dst []byte) []byte
	// fields names the members, see the type fields.
	fields(f *fields)
}

// AppendJSON appends the text of m to dst: type first, then the members in the order of the protocol document; unset
// optional members are left out, except those whose absence would mean something else to a peer.
func AppendJSON(dst []byte, m Message) []byte { return m.appendJSON(dst) }

// AppendJSONFrame appends a whole frame (flags 0) that carries m to dst.
func AppendJSONFrame(dst []byte, m Message) []byte {
	dst, start := beginFrame(dst, 0)
	return endFrame(m.appendJSON(dst), start)
}

// UnknownTypeError is well-formed JSON of a type that is not in the protocol. A request that is in it and not served
// decodes like any other, see RequestKind.Served.
type UnknownTypeError struct {
	Type      string
	Kind      RequestKind // KindUnknown, which is what to ask Judge with
	RequestID Opt[uint64] // when request_id was there and a non-negative integer
}

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("decode JSON message: type %q is not known", e.Type)
}

// Answer returns the unsupported message that answers the request.
func (e *UnknownTypeError) Answer() *Unsupported {
	return &Unsupported{RequestType: e.Type, RequestID: e.RequestID}
}

// DecodeJSON reads the payload of a frame with flags 0. The error is a *JSONError for a text that is no JSON object,
// has no type, or breaks the rules of its message, and an *UnknownTypeError for a type that nobody knows. PeekJSON
// finds the request id of such a text.
//
// Unknown members are skipped. Of a member given twice the last one counts; type, lists of objects, and the objects of
// shard_inspect_info and subscriptions_list may come once. What is allocated is bounded by twice the payload and 64 KiB.
func DecodeJSON(payload []byte) (Message, error) { return new(Decoder).DecodeJSON(payload) }

// Decoder is DecodeJSON for the messages of one stream: it keeps what every call needs, and the names of the last message,
// which most likely are those of the next one too. That is less than 1 KiB. The zero value is ready; it is not safe for
// concurrent use.
type Decoder struct {
	fields fields
	names  [3]string // see fields.names
}

// DecodeJSON is the function of this name. The message owns all its bytes: nothing of payload is kept.
func (d *Decoder) DecodeJSON(payload []byte) (Message, error) {
	typ, behind, err := messageType(payload)
	if err != nil {
		return nil, err
	}
	m := newMessage(typ)
	if m == nil {
		return nil, unknownType(payload)
	}
	f := &d.fields
	defer d.forget()
	*f = fields{pass: reading, known: &d.names, scanner: scanner{in: payload, pos: behind, typ: m.MessageType()}, level: level{top: true}}
	if behind > 0 {
		f.begun, f.types = true, 1
	}
	for f.member() {
		m.fields(f)
	}
	if f.err == nil && (f.peek() != 0 || f.pos < len(f.in)) {
		f.field = ""
		f.failHere("one object expected and nothing after it")
	}
	if f.err != nil {
		return nil, f.err
	}
	return m, nil
}

// forget lets go of the payload.
func (d *Decoder) forget() { d.fields = fields{} }

// messageType returns the type of a message, borrowed, and the position behind it when it is the first member, else 0.
// Nearly every sender puts it first, where it costs no extra walk.
func messageType(payload []byte) (typ []byte, behind int, err error) {
	if !utf8.Valid(payload) {
		return nil, 0, &JSONError{What: "not valid UTF-8"}
	}
	s := scanner{in: payload}
	if s.accept('{') && string(s.key()) == "type" {
		s.field = "type"
		if typ := s.text(MaxTypeBytes); s.err == nil {
			return typ, s.pos, nil
		}
	}
	peeked, _, err := PeekJSON(payload)
	return []byte(peeked), 0, err
}

// unknownType builds the error for a type that nobody knows; mistakes in the rest of the text come first.
func unknownType(payload []byte) error {
	typ, requestID, err := PeekJSON(payload)
	if err != nil {
		return err
	}
	return &UnknownTypeError{Type: typ, Kind: KindUnknown, RequestID: requestID}
}

// PeekJSON reads only the type and the request id of a message, so that one that does not decode can still be
// answered under its id. They are as complete as the text allowed, even with an error: everything in front of a syntax
// error was seen. requestID is unset when it is absent or no non-negative integer. The error is a *JSONError.
func PeekJSON(payload []byte) (typ string, requestID Opt[uint64], err error) {
	if !utf8.Valid(payload) {
		return "", Opt[uint64]{}, &JSONError{What: "not valid UTF-8"}
	}
	f := fields{pass: reading, scanner: scanner{in: payload}, level: level{top: true}}
	for f.member() {
		if f.pass == checking {
			continue
		}
		switch string(f.name) {
		case "type":
			f.waiting = false
			f.field = "type"
			typ = f.scanner.string(MaxTypeBytes)
		case "request_id":
			f.waiting = false
			requestID = f.peekUint()
		}
	}
	if f.err == nil && typ == "" {
		f.field = "type"
		f.fail("is missing")
	}
	if f.err == nil && (f.peek() != 0 || f.pos < len(f.in)) {
		f.failHere("one object expected and nothing after it")
	}
	if f.err != nil {
		return typ, requestID, f.err
	}
	return typ, requestID, nil
}

// peekUint consumes any value and returns it if it is a u64.
func (f *fields) peekUint() Opt[uint64] {
	value := scanner{in: f.in, pos: f.pos}
	v := value.uint(1<<64 - 1)
	f.scanner.skip()
	if value.err != nil || f.err != nil {
		return Opt[uint64]{}
	}
	return Some(v)
}
