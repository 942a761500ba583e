package wire

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
)

func TestEncodingAMessageAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 4096)
	for _, v := range loadVectors(t).JSON {
		m, err := DecodeJSON([]byte(v.Text))
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(50, func() { AppendJSONFrame(buf, m) }); n != 0 {
			t.Errorf("%s: %v allocations", v.Text, n)
		}
	}
}

func TestDecodingACacheGetTakesFewAllocations(t *testing.T) {
	payload := []byte(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"primary","key":"demo-key","request_id":2}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := DecodeJSON(payload); err != nil {
			t.Fatal(err)
		}
	}); n > 6 {
		t.Errorf("%v allocations, 6 are allowed: message, state, four strings", n)
	}
}

// allocated returns the bytes that f allocates, garbage included. What the runtime does on the side counts too, so a
// figure over the bound is measured again a few times and the least one counts.
func allocated(bound uint64, f func()) uint64 {
	least := ^uint64(0)
	for i := 0; i < 5 && least > bound; i++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// greedy holds inputs that try to make a decoder allocate more than they are worth.
func greedy() map[string][]byte {
	const n = 1 << 19
	repeat := func(unit string) string { return strings.Repeat(unit, n/len(unit)) }
	names := `"tenant_id":"t","namespace":"n","stream":"s"`
	return map[string][]byte{
		"empty payloads":           []byte(`{"type":"publish_batch",` + names + `,"payloads":["",` + repeat(`"",`) + `""]}`),
		"tiny payloads":            []byte(`{"type":"publish_batch",` + names + `,"payloads":[` + repeat(`"YQ==",`) + `""]}`),
		"escaped payloads":         []byte(`{"type":"publish_batch",` + names + `,"payloads":[` + repeat(`"\/\/\/\/",`) + `""]}`),
		"one large payload":        []byte(`{"type":"publish",` + names + `,"payload":"` + repeat(`AAAA`) + `"}`),
		"one escaped payload":      []byte(`{"type":"publish",` + names + `,"payload":"\/` + repeat(`AAAA`) + `AAA"}`),
		"payload given often":      []byte(`{"type":"publish",` + names + `,` + repeat(`"payload":"AAAA",`) + `"payload":""}`),
		"payloads given often":     []byte(`{"type":"publish_batch",` + names + `,` + repeat(`"payloads":[""],`) + `"payloads":[]}`),
		"value given often":        []byte(`{"type":"cache_put","tenant_id":"t","namespace":"n","cache":"c","key":"k",` + repeat(`"value":"AAA=",`) + `"value":""}`),
		"escaped message":          []byte(`{"type":"error","message":"` + repeat(`\n`) + `"}`),
		"message of one escape":    []byte(`{"type":"error","message":"\n` + repeat(`n`) + `"}`),
		"message given often":      []byte(`{"type":"error",` + repeat(`"message":"ab",`) + `"message":""}`),
		"escaped name of a member": []byte(`{"` + repeat(`\u0061`) + `":1,"type":"ok"}`),
		"long type":                []byte(`{"type":"` + repeat(`\u0061`) + `"}`),
		"large body":               []byte(`{"type":"extension","name":"","body":[` + repeat(`1,`) + `1]}`),
		"ports":                    []byte(`{"type":"auth_ok","server_flags":1,"listener_ports":[` + repeat(`1,`) + `1]}`),
		"brokers":                  []byte(`{"type":"topology_view","brokers":[` + repeat(`{"node_id":"","addr":""},`) + `{"node_id":"","addr":""}]}`),
		"owners":                   []byte(`{"type":"shard_owners_view","request_id":1,"owners":[` + strings.Repeat(`{"shard":0,"generation":0},`, MaxShardOwners-1) + `{"shard":0,"generation":0}]}`),
		"too many owners":          []byte(`{"type":"shard_owners_view","request_id":1,"owners":[` + repeat(`{"shard":0,"generation":0},`) + `{}]}`),
		"unknown members":          []byte(`{` + repeat(`"\n":[{}],`) + `"type":"ok"}`),
		"no JSON":                  bytes.Repeat([]byte("{"), n),
		"no UTF-8":                 bytes.Repeat([]byte{0xff}, n),
	}
}

// mission 173
func TestDecodersAllocateNoMoreThanTwiceTheirInput(t *testing.T) {
	bound := func(input []byte) uint64 { return 2*uint64(len(input)) + 64<<10 }
	for name, input := range greedy() {
		if got := allocated(bound(input), func() { decodeJSON(input) }); got > bound(input) {
			t.Errorf("%s: %d bytes allocated for %d", name, got, len(input))
		}
	}
	v := loadVectors(t)
	for _, f := range v.Frames {
		flags, input := split(t, unhex(t, f.Hex))
		if got := allocated(bound(input), func() { decodeBinary(flags, input) }); got > bound(input) {
			t.Errorf("%s: %d bytes allocated for %d", f.Name, got, len(input))
		}
	}
}

// mission 170, 172
func TestDeclaredLengthsAllocateNothing(t *testing.T) {
	huge := binary.BigEndian.AppendUint32([]byte("\x00\x01t\x00\x01n\x00\x01s"), 1<<32-1)
	lengths := bytes.Repeat([]byte{0xff}, 4096)
	for _, input := range [][]byte{huge, huge[9:], lengths} {
		for _, flags := range append(eventFlags(), publishFlags...) {
			if got := allocated(8<<10, func() { decodeBinary(flags, input) }); got > 8<<10 {
				t.Errorf("flags %04x: %d bytes allocated for %d", flags, got, len(input))
			}
		}
	}
}

// decodeJSON decodes input, and words the error if it fails.
func decodeJSON(input []byte) {
	if _, err := DecodeJSON(input); err != nil {
		_ = err.Error()
	}
}

// decodeBinary gives input to every binary decoder; those the flags do not belong to refuse it.
func decodeBinary(flags Flags, input []byte) {
	var p Publish
	_ = p.Decode(flags, input)
	_, _ = DecodePublishAck(flags, input)
	_, _ = DecodeEventBatch(flags, input)
}
