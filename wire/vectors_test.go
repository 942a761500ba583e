package wire

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/felixd/felixd/wire/id"
)

// vectors mirrors testdata/vectors.json, which is written by vectors.py without any of the code under test.
type vectors struct {
	Frames []frameVector
	JSON   []struct{ Text, Hex string }

	Accepted []struct{ Name, Text, Canonical string }
	Refused  []refusedVector
	Routing  []struct {
		Key, Hash string
		Modulo    map[string]uint32
		JumpHash  map[string]uint32 `json:"jump_hash"`
	}
	Errors []struct {
		Number    uint16
		Code      string
		Class     string
		ClassByte uint8 `json:"class_byte"`
	}
}

type frameVector struct {
	Name, Layout, Hex string
	Fields            json.RawMessage
}

type refusedVector struct {
	Name, From, Stage, Hex string
	RequestID              *uint64 `json:"request_id"`
}

func loadVectors(t testing.TB) vectors {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Frames) < 30 || len(v.JSON) < 130 || len(v.Refused) < 90 || len(v.Routing) < 15 || len(v.Errors) != 15 {
		t.Fatal("vectors.json is not complete, run vectors.py again")
	}
	return v
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// split parses the header of a whole frame and returns flags and payload.
func split(t testing.TB, frame []byte) (Flags, []byte) {
	t.Helper()
	h, err := ParseHeader(frame, MaxPayload)
	if err != nil {
		t.Fatal(err)
	}
	if int(h.Length) != len(frame)-HeaderSize {
		t.Fatalf("header announces %d bytes, %d are there", h.Length, len(frame)-HeaderSize)
	}
	return h.Flags, frame[HeaderSize:]
}

// The vectors are worth what their independence from this code is worth: they come from the script and from nowhere else.
func TestVectorsAreWhatTheirScriptPrints(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Logf("python3 is not here, so vectors.json is taken as it is: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	script := exec.CommandContext(ctx, python, "vectors.py")
	script.Dir = "testdata"
	var mistakes bytes.Buffer
	script.Stderr = &mistakes
	want, err := script.Output()
	if err != nil {
		t.Fatalf("vectors.py: %v: %s", err, &mistakes)
	}
	got, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("vectors.json has %d bytes and vectors.py prints %d others: run vectors.py again", len(got), len(want))
	}
}

// mission 179, 181, 182
func TestEveryFrameVectorDecodesAndEncodesToTheSameBytes(t *testing.T) {
	check := map[string]func(*testing.T, frameVector, []byte) []byte{
		"publish": checkPublishVector, "publish_ack": checkAckVector, "events": checkEventVector,
	}
	for _, v := range loadVectors(t).Frames {
		t.Run(v.Name, func(t *testing.T) {
			frame := unhex(t, v.Hex)
			if again := check[v.Layout](t, v, frame); !bytes.Equal(again, frame) {
				t.Errorf("encodes to\n%x, want\n%x", again, frame)
			}
		})
	}
}

func checkPublishVector(t *testing.T, v frameVector, frame []byte) []byte {
	var want struct {
		RequestID  *string `json:"request_id"`
		AckMode    uint8   `json:"ack_mode"`
		ProducerID string  `json:"producer_id"`
		Sequence   string
		Key        *string
		TenantID   string `json:"tenant_id"`
		Namespace  string
		Stream     string
		Payloads   []string
	}
	unmarshal(t, v.Fields, &want)
	flags, payload := split(t, frame)
	var p Publish
	if err := p.Decode(flags, payload); err != nil {
		t.Fatal(err)
	}
	if p.HasRequestID != (want.RequestID != nil) || p.HasRequestID && p.RequestID != u64(t, *want.RequestID) {
		t.Errorf("request id %d %v", p.RequestID, p.HasRequestID)
	}
	if p.Keyed != (want.Key != nil) || p.Keyed && hex.EncodeToString(p.Key) != *want.Key {
		t.Errorf("key %x %v", p.Key, p.Keyed)
	}
	if p.ProducerID != u64(t, want.ProducerID) || p.Sequence != u64(t, want.Sequence) || p.Ack != AckMode(want.AckMode) {
		t.Errorf("producer %d, sequence %d, ack %v", p.ProducerID, p.Sequence, p.Ack)
	}
	if string(p.Tenant) != want.TenantID || string(p.Namespace) != want.Namespace || string(p.Stream) != want.Stream {
		t.Errorf("names %s/%s/%s", p.Tenant, p.Namespace, p.Stream)
	}
	checkPayloads(t, p.Region, p.Count, want.Payloads)
	return AppendPublish(nil, &p)
}

func checkAckVector(t *testing.T, v frameVector, frame []byte) []byte {
	var want struct {
		RequestID    string `json:"request_id"`
		OK           bool
		Message      string
		Code         uint16
		Retry        uint8
		Reason       string
		RetryAfterMS string `json:"retry_after_ms"`
		Owner        *struct {
			NodeID     string `json:"node_id"`
			Addr       string
			Generation string
		}
		Offset *string
	}
	unmarshal(t, v.Fields, &want)
	flags, payload := split(t, frame)
	a, err := DecodePublishAck(flags, payload)
	if err != nil {
		t.Fatal(err)
	}
	if a.RequestID != u64(t, want.RequestID) || (a.Refusal == nil) != want.OK {
		t.Errorf("request id %d, refusal %v", a.RequestID, a.Refusal)
	}
	if r := a.Refusal; r != nil {
		expect := Refusal{Code(want.Code), Retry(want.Retry), want.Message, want.Reason, u64(t, want.RetryAfterMS)}
		if *r != expect {
			t.Errorf("refusal %+v, want %+v", *r, expect)
		}
	}
	if a.HasOffset != (want.Offset != nil) || a.HasOffset && a.Offset != id.Offset(u64(t, *want.Offset)) {
		t.Errorf("offset %d %v", a.Offset, a.HasOffset)
	}
	if (a.Owner != nil) != (want.Owner != nil) {
		t.Fatalf("owner %v", a.Owner)
	}
	if o := a.Owner; o != nil && *o != (Owner{want.Owner.NodeID, want.Owner.Addr, id.Generation(u64(t, want.Owner.Generation))}) {
		t.Errorf("owner %+v", *o)
	}
	return AppendPublishAck(nil, &a, Grant{Flags: KnownFlags})
}

func checkEventVector(t *testing.T, v frameVector, frame []byte) []byte {
	var want struct {
		SubscriptionID  string  `json:"subscription_id"`
		BaseOffset      *string `json:"base_offset"`
		SkippedBefore   string  `json:"skipped_before"`
		Publisher       string
		TimestampMicros string `json:"timestamp_micros"`
		Payloads        []string
	}
	unmarshal(t, v.Fields, &want)
	flags, payload := split(t, frame)
	d, err := DecodeEventBatch(flags, payload)
	if err != nil {
		t.Fatal(err)
	}
	if d.HasOffset != (want.BaseOffset != nil) || d.HasOffset && d.BaseOffset != id.Offset(u64(t, *want.BaseOffset)) {
		t.Errorf("base offset %d %v", d.BaseOffset, d.HasOffset)
	}
	if d.SubscriptionID != u64(t, want.SubscriptionID) || d.SkippedBefore != u64(t, want.SkippedBefore) || string(d.Publisher) != want.Publisher {
		t.Errorf("subscription %d, skipped %d, publisher %q", d.SubscriptionID, d.SkippedBefore, d.Publisher)
	}
	again := EventBatch{SubscriptionID: d.SubscriptionID, HasOffset: d.HasOffset, BaseOffset: d.BaseOffset,
		SkippedBefore: d.SkippedBefore, Publisher: d.Publisher, Timestamps: d.Timestamps, Count: d.Count}
	for p, micros, ok := d.Next(); ok; p, micros, ok = d.Next() {
		if micros != u64(t, want.TimestampMicros) {
			t.Errorf("timestamp %d", micros)
		}
		again.TimestampMicros = micros
		again.Region = AppendPayload(again.Region, p)
	}
	checkPayloads(t, again.Region, again.Count, want.Payloads)
	return AppendEventBatch(nil, flags, &again)
}

func checkPayloads(t *testing.T, r Region, count uint32, want []string) {
	t.Helper()
	if int(count) != len(want) || r.Count() != count {
		t.Fatalf("count %d, region holds %d, want %d", count, r.Count(), len(want))
	}
	for i := range want {
		p, rest, ok := r.Next()
		if !ok || hex.EncodeToString(p) != want[i] {
			t.Errorf("payload %d is %x, want %s", i, p, want[i])
		}
		r = rest
	}
}

func unmarshal(t *testing.T, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}

// u64 reads a decimal string; the empty one is 0.
func u64(t *testing.T, s string) uint64 {
	t.Helper()
	if s == "" {
		return 0
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mission 178, 181
func TestEveryJSONVectorDecodesAndEncodesToTheSameText(t *testing.T) {
	types := map[string]bool{}
	for _, v := range loadVectors(t).JSON {
		flags, payload := split(t, unhex(t, v.Hex))
		if flags != 0 || string(payload) != v.Text {
			t.Fatalf("vector is inconsistent: %s", v.Text)
		}
		m, err := DecodeJSON(payload)
		if err != nil {
			t.Errorf("%s: %v", v.Text, err)
			continue
		}
		types[m.MessageType()] = true
		if got := AppendJSONFrame(nil, m); hex.EncodeToString(got) != v.Hex {
			t.Errorf("encodes to\n%s, want\n%s", got[HeaderSize:], v.Text)
		}
		if typ, _, err := PeekJSON(payload); err != nil || typ != m.MessageType() {
			t.Errorf("peek: type %q, %v", typ, err)
		}
	}
	if len(types) != 76 {
		t.Errorf("%d message types have a vector, there are 76", len(types))
	}
}

func TestTextsOfOtherEncodersDecodeToTheCanonicalMessage(t *testing.T) {
	for _, v := range loadVectors(t).Accepted {
		m, err := DecodeJSON([]byte(v.Text))
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if got := string(AppendJSON(nil, m)); got != v.Canonical {
			t.Errorf("%s: encodes to\n%s, want\n%s", v.Name, got, v.Canonical)
		}
	}
}

// mission 183, 184, 185
func TestEveryRefusedVectorFailsAtItsStageWithItsRequestID(t *testing.T) {
	for _, v := range loadVectors(t).Refused {
		t.Run(v.Name, func(t *testing.T) {
			stage, requestID, err := decodeAny(v.From, unhex(t, v.Hex))
			if err == nil {
				t.Fatal("decoded")
			}
			if stage != v.Stage {
				t.Errorf("failed at %s (%v), want %s", stage, err, v.Stage)
			}
			if requestID.Set != (v.RequestID != nil) || requestID.Set && requestID.V != *v.RequestID {
				t.Errorf("request id %+v, want %v", requestID, v.RequestID)
			}
		})
	}
}

// decodeAny decodes a frame as its receiver would and says at which stage that failed.
func decodeAny(from string, frame []byte) (stage string, requestID Opt[uint64], err error) {
	h, err := ParseHeader(frame, MaxPayload)
	if err != nil {
		return "header", requestID, err
	}
	payload := frame[HeaderSize:]
	var p Publish
	switch {
	case h.Flags == 0:
		_, err = DecodeJSON(payload)
		_, requestID, _ = PeekJSON(payload)
	case from == "client":
		err = p.Decode(h.Flags, payload)
		requestID = Opt[uint64]{V: p.RequestID, Set: p.HasRequestID}
	case h.Flags.CheckServerToClient() != nil:
		err = h.Flags.CheckServerToClient()
	case h.Flags.Has(FlagPublishAck):
		_, err = DecodePublishAck(h.Flags, payload)
	default:
		_, err = DecodeEventBatch(h.Flags, payload)
	}
	return stageOf(err), requestID, err
}

func stageOf(err error) string {
	var (
		frame   *FrameError
		flags   *FlagsError
		layout  *LayoutError
		text    *JSONError
		unknown *UnknownTypeError
	)
	switch {
	case errors.As(err, &frame):
		return "header"
	case errors.As(err, &flags):
		return "flags"
	case errors.As(err, &layout) && errors.Is(err, ErrMalformed):
		return "layout"
	case errors.As(err, &text) && errors.Is(err, ErrMalformed):
		return "json"
	case errors.As(err, &unknown):
		return "type"
	}
	return "none"
}

func TestEveryRoutingVectorGivesItsShard(t *testing.T) {
	for _, v := range loadVectors(t).Routing {
		key := unhex(t, v.Key)
		if KeyHash(key) != parseHex(t, v.Hash) {
			t.Errorf("hash of %s = %016x, want %s", v.Key, KeyHash(key), v.Hash)
		}
		for shards, want := range v.Modulo {
			if got := RoutingModulo.Shard(key, true, uint32(u64(t, shards))); got != want {
				t.Errorf("%s modulo %s = %d, want %d", v.Key, shards, got, want)
			}
		}
		for shards, want := range v.JumpHash {
			if got := RoutingJumpHash.Shard(key, true, uint32(u64(t, shards))); got != want {
				t.Errorf("%s jump %s = %d, want %d", v.Key, shards, got, want)
			}
		}
	}
}

func parseHex(t *testing.T, s string) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheErrorTableIsTheOneOfTheProtocol(t *testing.T) {
	for _, v := range loadVectors(t).Errors {
		c := Code(v.Number)
		if c.String() != v.Code || c.DefaultRetry().String() != v.Class || uint8(c.DefaultRetry()) != v.ClassByte {
			t.Errorf("code %d is %s, %s, %d; want %s, %s, %d", v.Number, c, c.DefaultRetry(), c.DefaultRetry(), v.Code, v.Class, v.ClassByte)
		}
	}
}
