package wire

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
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

// worth is what a decoder may allocate for an input.
func worth(input []byte) uint64 { return 2*uint64(len(input)) + 64<<10 }

func checkAllocated(t *testing.T, name string, input []byte, decode func()) {
	t.Helper()
	if got := allocated(worth(input), decode); got > worth(input) {
		t.Errorf("%s: %d bytes allocated for %d: %.120q", name, got, len(input), input)
	}
}

// mission 173
func TestDecodersAllocateNoMoreThanTwiceTheirInput(t *testing.T) {
	inputs := greedy()
	eachText(t, func(text []byte) { inputs[string(text)] = text })
	for name, input := range inputs {
		checkAllocated(t, name, input, func() { decodeJSON(input) })
	}
	for _, f := range loadVectors(t).Frames {
		flags, input := split(t, unhex(t, f.Hex))
		checkAllocated(t, f.Name, input, func() { decodeBinary(flags, input) })
	}
	flags := slices.Concat(publishFlags, formsOf(FlagPublishAck), eventFlags())
	for name, input := range corpus(t) {
		checkAllocated(t, name, input, func() { decodeJSON(input) })
		if strings.Contains(name, "JSON") {
			continue
		}
		for _, f := range flags {
			checkAllocated(t, name, input, func() { decodeBinary(f, input) })
		}
	}
}

// mission 173
func TestMembersGivenOftenAndArraysOfJunkAllocateNoMoreThanTwiceTheirInput(t *testing.T) {
	arrays := 0
	for _, text := range fullest(t) {
		input := swollen(text)
		checkAllocated(t, text, input, func() { decodeJSON(input) })
		for _, input := range padded(text) {
			checkAllocated(t, text, input, func() { decodeJSON(input) })
			arrays++
		}
	}
	if arrays < 50 {
		t.Errorf("only %d arrays were filled", arrays)
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
