package hostile

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/felixd/felixd/wire"
)

// field case PRO-01: each number of the protocol at and beyond its ends. Every answer is a success or a typed refusal under the
// right request, nothing wraps, and the stream serves on. The protocol has no variable-length integers.
func TestPRO01_NegativeAndOverflowingNumbersAreRefusedCleanly(t *testing.T) {
	aside(t)
	h := open(t, setup{})
	l := h.from(t, 11).dial().open()
	jsonNumbers(t, l)
	binaryNumbers(t, l)
	l.alive("after all numbers")
	for name, v := range h.Look().Metrics {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || v > 1<<40 {
			t.Errorf("%s is %v", name, v)
		}
	}
}

// jsonNumbers puts every kind of number where the protocol has one.
func jsonNumbers(t *testing.T, l *line) {
	names := `"tenant_id":"t1","namespace":"default",`
	fields := []struct{ message, most string }{ // most is the largest value the field takes
		{`{"type":"cache_put",` + names + `"cache":"users","key":"n","value":"dg==","request_id":1,"ttl_ms":%s}`, "18446744073709551615"},
		{`{"type":"cache_put",` + names + `"cache":"users","key":"n","value":"dg==","request_id":%s}`, "18446744073709551615"},
		{`{"type":"cache_get",` + names + `"cache":"users","key":"n","request_id":%s}`, "18446744073709551615"},
		{`{"type":"publish",` + names + `"stream":"other","payload":"eA==","ack":"per_message","request_id":%s}`, "18446744073709551615"},
		{`{"type":"subscribe",` + names + `"stream":"none","shard":%s}`, "4294967295"},
		{`{"type":"subscribe",` + names + `"stream":"wide","shard":%s,"start":{"offset":7}}`, "4294967295"},
		{`{"type":"subscribe",` + names + `"stream":"none","queue_capacity":%s}`, "4294967295"},
		{`{"type":"subscribe",` + names + `"stream":"other","start":{"offset":%s}}`, "18446744073709551615"},
		{`{"type":"shard_owners",` + names + `"name":"wide","kind":"stream","request_id":%s}`, "18446744073709551615"},
		{`{"type":"counter_add",` + names + `"stream":"other","counter":"c","delta":%s,"request_id":1}`, "9223372036854775807"},
		{`{"type":"offset_for_time",` + names + `"stream":"other","timestamp_ms":%s,"request_id":1}`, "18446744073709551615"},
	}
	for _, f := range fields {
		for _, n := range []string{"0", "1", f.most, beyond(f.most), "-1", "-0", "-9223372036854775808", "-9223372036854775809", "1.5", "1e3", "1e400", "00", "01", "0x1", "+1", "NaN", "\"1\"", "null", "[]", "true", strings.Repeat("9", 400)} {
			text := fmt.Sprintf(f.message, n)
			l.raw(jsonFrame(text))
			if a := l.next(); a.flags == 0 && a.message == nil {
				t.Errorf("%s was answered %s", text, a)
			}
		}
		l.alive(f.message)
	}
	// A time to live beyond the end of time is for ever, not the past.
	if v, ok := l.ask(&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "ever", Value: []byte("v"), TTLMillis: wire.Some(uint64(math.MaxUint64)), RequestID: wire.Some(uint64(1))}).message.(*wire.CacheOK); !ok {
		t.Errorf("a put with the longest time to live: %+v", v)
	}
	if v, ok := l.ask(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "ever"}).message.(*wire.CacheValue); !ok || !v.Value.Set {
		t.Errorf("an entry with the longest time to live is gone: %+v", v)
	}
}

// beyond is one more than the largest value.
func beyond(most string) string { return most[:len(most)-1] + string(most[len(most)-1]+1) }

// binaryNumbers: lengths and counts of a binary publish that do not add up, and those that just do.
func binaryNumbers(t *testing.T, l *line) {
	region := func(length, have int) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(length)), make([]byte, have)...)
	}
	for _, c := range []struct {
		name   string
		count  uint32
		region []byte
		ok     bool
	}{
		{"nothing", 0, nil, true},
		{"nothing with bytes behind", 0, []byte{0}, true}, // what stands behind the counted records is passed over,
		{"an empty record", 1, region(0, 0), true},
		{"one of two", 2, region(1, 1), false},
		{"a count of everything", math.MaxUint32, region(1, 1), false},
		{"a length of everything", 1, region(math.MaxUint32, 1), false},
		{"a negative length", 1, region(math.MinInt32, 1), false},
		{"a length one too long", 1, region(2, 1), false},
		{"bytes behind the last", 1, region(1, 2), true},
		{"a length that is cut", 1, []byte{0, 0}, false},
	} {
		for _, id := range []uint64{0, 1, math.MaxInt64, math.MaxUint64} {
			for _, mode := range []byte{1, 2, 0, 3, 255} {
				body := append(binary.BigEndian.AppendUint64(nil, id), mode)
				for _, name := range []string{tenant, namespace, "other"} {
					body = append(binary.BigEndian.AppendUint16(body, uint16(len(name))), name...)
				}
				body = append(binary.BigEndian.AppendUint32(body, c.count), c.region...)
				l.raw(append(wire.AppendHeader(nil, wire.Header{Flags: 0x0009, Length: uint32(len(body))}), body...))
				f := l.next()
				if want := c.ok && (mode == 1 || mode == 2); f.ack.RequestID != id || (f.ack.Refusal == nil) != want {
					t.Errorf("%s, request %d, mode %d: %s %+v", c.name, id, mode, f, f.ack.Refusal)
				}
			}
		}
	}
}
