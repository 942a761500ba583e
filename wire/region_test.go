package wire

import (
	"bytes"
	"errors"
	"math/rand"
	"strings"
	"testing"
)

func regionOf(payloads ...string) Region {
	var r Region
	for _, p := range payloads {
		r = AppendPayload(r, []byte(p))
	}
	return r
}

func TestRegionEndsAtItsLastPayload(t *testing.T) {
	whole := regionOf("a", "", "bcd")
	got, size, err := CheckRegion(append(bytes.Clone(whole), "trailing"...), 3)
	if err != nil || !bytes.Equal(got, whole) || size != 4 {
		t.Fatalf("%x, %d bytes, %v", got, size, err)
	}
	if cap(got) != len(got) {
		t.Error("appending to the region would write into the buffer it was cut from")
	}
}

func TestACountThatCannotFitIsRefusedBeforeItIsWalked(t *testing.T) {
	huge := make([]byte, 400)
	for _, count := range []uint32{101, 1 << 31, 1<<32 - 1} {
		_, _, err := CheckRegion(huge, count)
		var le *LayoutError
		if !errors.As(err, &le) || le.Field != "count" {
			t.Errorf("count %d: %v", count, err)
		}
	}
	if _, _, err := CheckRegion(huge, 100); err != nil {
		t.Errorf("a hundred empty payloads: %v", err)
	}
}

func TestRegionMistakesSayWhichPayload(t *testing.T) {
	tests := []struct {
		b     string
		count uint32
		want  string
	}{
		{"\x00\x00\x00\x05abcd", 1, "payload 0 of 1 announces 5 bytes, 4 are left"},
		{"\x00\x00\x00\x02ab\x00\x00", 2, "payload 1 of 2 is cut short"},
		{"\xff\xff\xff\xff", 1, "announces 4294967295 bytes"},
	}
	for _, tt := range tests {
		_, _, err := CheckRegion([]byte(tt.b), tt.count)
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%x: %v, want %q", tt.b, err, tt.want)
		}
	}
}

func TestCutKeepsEveryPayloadOnceAndInOrder(t *testing.T) {
	rng := rand.New(rand.NewSource(7))
	for range 300 {
		var payloads [][]byte
		var r Region
		for range rng.Intn(20) {
			p := bytes.Repeat([]byte{byte(len(payloads))}, rng.Intn(40))
			payloads = append(payloads, p)
			r = AppendPayload(r, p)
		}
		checkCuts(t, r, payloads, 1+rng.Intn(8), rng.Intn(100))
	}
}

// checkCuts compares Cut with a slice of payloads and a loop.
func checkCuts(t *testing.T, r Region, payloads [][]byte, maxEvents, maxBytes int) {
	t.Helper()
	for len(payloads) > 0 {
		n, size := 0, 0
		for n < len(payloads) && (n == 0 || n < maxEvents && size+4+len(payloads[n]) <= maxBytes) {
			size += 4 + len(payloads[n])
			n++
		}
		head, count, rest := r.Cut(maxEvents, maxBytes)
		if int(count) != n || len(head) != size || head.Count() != count {
			t.Fatalf("cut %d events, %d bytes, want %d, %d", count, len(head), n, size)
		}
		for i := range n {
			p, next, ok := head.Next()
			if !ok || !bytes.Equal(p, payloads[i]) {
				t.Fatalf("payload %d is %x, want %x", i, p, payloads[i])
			}
			head = next
		}
		payloads, r = payloads[n:], rest
	}
	if head, count, rest := r.Cut(maxEvents, maxBytes); len(head) != 0 || count != 0 || len(rest) != 0 {
		t.Fatalf("an empty region was cut into %d events", count)
	}
}

func TestCuttingAndIteratingAllocateNothing(t *testing.T) {
	r := regionOf("a", "bb", "ccc", "dddd")
	allocs := testing.AllocsPerRun(100, func() {
		for rest := r; len(rest) > 0; {
			head, _, next := rest.Cut(2, 1<<16)
			for _, more, ok := head.Next(); ok; _, more, ok = more.Next() {
			}
			rest = next
		}
		if _, _, err := CheckRegion(r, 4); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
