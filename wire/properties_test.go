package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"testing"
)

// What must hold of every decoder, whatever the bytes: it says yes or a typed no, it never holds more elements than the
// bytes allow, and what it understood survives a way out and back. The fuzz targets and the tests over the vectors use
// these same checks.

// checkTyped fails on an error that a caller could not tell apart.
func checkTyped(t *testing.T, err error) {
	t.Helper()
	if stageOf(err) == "none" || err.Error() == "" {
		t.Fatalf("untyped error %#v", err)
	}
}

// layout is a binary decoder and its encoder. encode returns nil for a value that cannot be encoded in one piece.
type layout struct {
	decode func(flags Flags, payload []byte) (any, error)
	encode func(flags Flags, v any) []byte
	exact  bool // encoding gives the payload back; otherwise one way out and back may normalise
}

func (l layout) check(t *testing.T, flags Flags, payload []byte) {
	t.Helper()
	first, err := l.decode(flags, payload)
	if err != nil {
		checkTyped(t, err)
		return
	}
	checkWeight(t, first, payload)
	frame := l.encode(flags, first)
	if frame == nil {
		return
	}
	flags, again := split(t, frame)
	if l.exact && !bytes.HasPrefix(payload, again) {
		t.Fatalf("%x encodes to %x", payload, again)
	}
	second, err := l.decode(flags, again)
	if err != nil || l.exact && !reflect.DeepEqual(first, second) {
		t.Fatalf("%+v comes back as %+v, %v", first, second, err)
	}
	if third := l.encode(flags, second); !bytes.Equal(third, frame) {
		t.Fatalf("%+v encodes to %x and then to %x", first, frame, third)
	}
}

// checkWeight fails when v holds more bytes and elements than the bytes it was decoded from.
func checkWeight(t *testing.T, v any, payload []byte) {
	t.Helper()
	if w := weight(reflect.ValueOf(v)); w > len(payload) {
		t.Fatalf("%d bytes gave %d bytes and elements: %+v", len(payload), w, v)
	}
}

// weight counts the bytes of all texts and the elements of all lists; of a region, payloads and their bytes.
func weight(v reflect.Value) int {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return weight(v.Elem())
	case reflect.Struct:
		w := 0
		for i := range v.NumField() {
			w += weight(v.Field(i))
		}
		return w
	case reflect.Slice:
		return weightOfSlice(v)
	}
	return 0
}

func weightOfSlice(v reflect.Value) int {
	w := v.Len()
	switch {
	case v.Type() == reflect.TypeFor[Region]():
		return w - (PayloadOverhead-1)*int(Region(v.Bytes()).Count())
	case v.Type().Elem().Kind() == reflect.Uint8:
		return w
	}
	for i := range v.Len() {
		w += weight(v.Index(i))
	}
	return w
}

// checkJSON is layout.check for JSON messages, with encoding/json as a second opinion.
func checkJSON(t *testing.T, payload []byte) {
	t.Helper()
	typ, requestID, peekErr := PeekJSON(payload)
	m, err := DecodeJSON(payload)
	checkDecoder(t, payload, m, err)
	if err != nil {
		checkTyped(t, err)
		var unknown *UnknownTypeError
		if errors.As(err, &unknown) && (!json.Valid(payload) || newMessage([]byte(typ)) != nil || unknown.RequestID != requestID) {
			t.Fatalf("%q was taken for a type that nobody knows: %#v", payload, unknown)
		}
		return
	}
	if !json.Valid(payload) || peekErr != nil || typ != m.MessageType() {
		t.Fatalf("%q decoded as %q; peek says %q, %v", payload, m.MessageType(), typ, peekErr)
	}
	if id := RequestIDOf(m); id.Set && id != requestID {
		t.Fatalf("%q has the request id %+v; peek says %+v", payload, id, requestID)
	}
	checkWeight(t, m, payload)
	text := AppendJSON(nil, m)
	again, err := DecodeJSON(text)
	if err != nil || !reflect.DeepEqual(m, again) || !json.Valid(text) {
		t.Fatalf("%q comes back as %q, %v", payload, text, err)
	}
}

// checkDecoder decodes with a Decoder that has seen something else, and the same, before.
func checkDecoder(t *testing.T, payload []byte, m Message, err error) {
	t.Helper()
	var d Decoder
	if _, err := d.DecodeJSON([]byte(`{"type":"cache_get","tenant_id":"t","namespace":"n","cache":"c","key":"k"}`)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again, againErr := d.DecodeJSON(payload)
		if !reflect.DeepEqual(again, m) || (err == nil) != (againErr == nil) || err != nil && againErr.Error() != err.Error() {
			t.Fatalf("%q: %+v, %v; a decoder that is used again gives %+v, %v", payload, m, err, again, againErr)
		}
	}
	if !reflect.ValueOf(d.fields).IsZero() {
		t.Fatalf("%q: the decoder keeps %+v", payload, d.fields)
	}
}

// checkPeek compares what PeekJSON found with what encoding/json finds.
func checkPeek(t *testing.T, payload []byte) {
	t.Helper()
	typ, requestID, err := PeekJSON(payload)
	if err != nil {
		checkTyped(t, err)
		return
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(payload, &members); err != nil {
		t.Fatalf("%q was peeked into as %q, and is no object: %v", payload, typ, err)
	}
	var wantType string
	if err := json.Unmarshal(members["type"], &wantType); err != nil || typ != wantType || len(typ) > MaxTypeBytes {
		t.Fatalf("%q has the type %q; peek says %q", payload, wantType, typ)
	}
	want, err := strconv.ParseUint(string(members["request_id"]), 10, 64)
	if requestID != (Opt[uint64]{V: want, Set: err == nil}) && (err == nil || requestID.Set) {
		t.Fatalf("%q has the request id %s; peek says %+v", payload, members["request_id"], requestID)
	}
}
