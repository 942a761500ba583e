package reading

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/felixd/felixd/storage/keyed"
)

func someRecords() []Record {
	return []Record{
		{Op: OpPut, Key: []byte("k"), Value: []byte("v"), ExpiresAtMillis: 1 << 60},
		{Op: OpPut, Key: []byte{}, Value: []byte{}},
		{Op: OpDelete, Key: []byte("gone"), Value: []byte{}},
		{Op: OpMove, Key: []byte("k"), Value: []byte("moved"), ExpiresAtMillis: 7, Version: 1 << 40},
		{Op: OpExpire, Key: []byte("ended"), Value: []byte{}, Version: 9},
	}
}

func sameRecord(a, b Record) bool {
	return a.Op == b.Op && a.ExpiresAtMillis == b.ExpiresAtMillis && a.Version == b.Version && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value)
}

func TestRecordsAreReadAsTheyWereWrittenAloneAndTogether(t *testing.T) {
	var body []byte
	for _, r := range someRecords() {
		one := AppendRecord([]byte("in front"), r)[len("in front"):]
		if len(one) != RecordSize(r.Op, len(r.Key), len(r.Value)) {
			t.Errorf("%d bytes, RecordSize says %d", len(one), RecordSize(r.Op, len(r.Key), len(r.Value)))
		}
		if got, err := DecodeRecord(one[lengthPrefix:]); err != nil || !sameRecord(got, r) {
			t.Errorf("decoded %+v, %v; want %+v", got, err, r)
		}
		body = append(body, one...)
	}
	i := 0
	for r, err := range Records(body) {
		if err != nil || !sameRecord(r, someRecords()[i]) {
			t.Errorf("record %d is %+v, %v", i, r, err)
		}
		i++
	}
	if i != len(someRecords()) {
		t.Errorf("%d records of %d", i, len(someRecords()))
	}
	for range Records(body) { // one may stop early
		break
	}
}

// The bytes are those of the log: a later version reads them.
func TestTheBytesOfRecords(t *testing.T) {
	for want, r := range map[string]Record{
		"\x00\x00\x00\x10\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x01kvv":                                 {Op: OpPut, ExpiresAtMillis: 7, Version: 5, Key: []byte("k"), Value: []byte("vv")},
		"\x00\x00\x00\x0e\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01k":                                   {Op: OpDelete, ExpiresAtMillis: 7, Version: 5, Key: []byte("k"), Value: []byte("not written")},
		"\x00\x00\x00\x18\x03\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x01kvv": {Op: OpMove, ExpiresAtMillis: 7, Version: 5, Key: []byte("k"), Value: []byte("vv")},
		"\x00\x00\x00\x16\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x01k":   {Op: OpExpire, ExpiresAtMillis: 7, Version: 5, Key: []byte("k"), Value: []byte("not written")},
	} {
		if got := AppendRecord(nil, r); string(got) != want {
			t.Errorf("operation %d: %q, want %q", r.Op, got, want)
		}
	}
	for want, r := range map[string]CounterRecord{
		"\x00\x00\x00\x16\x01\xff\xff\xff\xff\xff\xff\xff\xfe\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x01k": {Op: CounterAdd, Delta: -2, Sum: 7, Version: 5, Key: []byte("k")},
		"\x00\x00\x00\x16\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x01k": {Op: CounterCheckpoint, Delta: -2, Sum: 7, Version: 5, Key: []byte("k")},
	} {
		if got := AppendCounterRecord(nil, r); string(got) != want {
			t.Errorf("counter operation %d: %q, want %q", r.Op, got, want)
		}
	}
}

// G28: what is not understood is an error and not a miss.
func TestBytesThatAreNoRecordAreRefusedByName(t *testing.T) {
	for _, r := range someRecords() {
		good := AppendRecord(nil, r)[lengthPrefix:]
		var broken *RecordError
		for n := range r.Op.header() + len(r.Key) {
			if _, err := DecodeRecord(good[:n]); !errors.As(err, &broken) {
				t.Fatalf("operation %d, the first %d bytes: %v", r.Op, n, err)
			}
		}
		changed := func(change func(b []byte) []byte) error {
			_, err := DecodeRecord(change(bytes.Clone(good)))
			return err
		}
		endless := changed(func(b []byte) []byte { binary.BigEndian.PutUint32(b[r.Op.header()-lengthPrefix:], 1<<32-1); return b })
		older := changed(func(b []byte) []byte { b[0] = 0; return b })
		newer := changed(func(b []byte) []byte { b[0] = 5; return b })
		for name, err := range map[string]error{"endless key": endless, "operation 0": older, "operation 5": newer} {
			if !errors.As(err, &broken) {
				t.Errorf("operation %d, %s: %v", r.Op, name, err)
			}
		}
		if !r.Op.hasValue() {
			for name, err := range map[string]error{
				"a value":   changed(func(b []byte) []byte { return append(b, 'v') }),
				"an expiry": changed(func(b []byte) []byte { b[opBytes]++; return b }),
			} {
				if !errors.As(err, &broken) {
					t.Errorf("operation %d, %s: %v", r.Op, name, err)
				}
			}
		}
	}
}

func TestABodyIsReadUpToWhatIsWrongWithIt(t *testing.T) {
	good := AppendRecord(AppendRecord(nil, someRecords()[0]), someRecords()[3])
	first := len(AppendRecord(nil, someRecords()[0]))
	for n := range good {
		records, failed := 0, false
		for _, err := range Records(good[:n]) {
			if err == nil && !failed {
				records++
				continue
			}
			var broken *RecordError
			if failed || !errors.As(err, &broken) {
				t.Fatalf("the first %d bytes: %v", n, err)
			}
			failed = true
		}
		want := 0
		if n >= first {
			want = 1
		}
		if whole := n == 0 || n == first; failed == whole || records != want {
			t.Fatalf("the first %d bytes: %d records, failed %v", n, records, failed)
		}
	}
}

func TestAnExpiryIsAbsoluteAndNeverOverflows(t *testing.T) {
	for _, c := range []struct{ now, ttl, want uint64 }{
		{1000, 500, 1500}, {1000, 0, 1000}, {1000, ^uint64(0), maxExpiryMillis}, {1000, 1 << 62, maxExpiryMillis}, {0, 0, 1}, {^uint64(0), 1, maxExpiryMillis},
	} {
		if got := Expiry(c.now, c.ttl); got != c.want {
			t.Errorf("now %d ttl %d: %d, want %d", c.now, c.ttl, got, c.want)
		}
	}
}

func someCounterRecords() []CounterRecord {
	return []CounterRecord{
		{Op: CounterAdd, Delta: -1 << 63, Sum: 1<<63 - 1, Key: []byte("k")}, {Op: CounterAdd, Key: []byte{}}, {Op: CounterCheckpoint, Sum: -5, Version: 1 << 40, Key: []byte("key")},
	}
}

func TestCounterRecordsAreReadAsTheyWereWrittenAndNothingElseIs(t *testing.T) {
	for _, r := range someCounterRecords() {
		one := AppendCounterRecord(nil, r)
		if len(one) != CounterRecordSize(len(r.Key)) {
			t.Errorf("%d bytes, CounterRecordSize says %d", len(one), CounterRecordSize(len(r.Key)))
		}
		good := one[lengthPrefix:]
		if got, err := DecodeCounterRecord(good); err != nil || fmt.Sprint(got) != fmt.Sprint(r) {
			t.Errorf("decoded %+v, %v; want %+v", got, err, r)
		}
		wrong := [][]byte{append(bytes.Clone(good), 0)}
		for n := range good {
			wrong = append(wrong, good[:n])
		}
		for _, op := range []byte{0, 3, 255} {
			wrong = append(wrong, append([]byte{op}, good[1:]...))
		}
		for _, b := range wrong {
			var broken *CounterRecordError
			if _, err := DecodeCounterRecord(b); !errors.As(err, &broken) {
				t.Errorf("%q: %v", b, err)
			}
		}
	}
}

// G19: what a compaction copies is what the log said.
func TestAMoveIsDecodedAsWhatItMoves(t *testing.T) {
	e := keyed.Entry{Key: []byte("k"), Value: []byte("v"), Version: 3, Offset: 8, ExpiresAtMillis: 99}
	c, err := CacheDecoder(EncodeMove([]byte("in front"), e)[len("in front"):], 20, unknownBefore)
	if err != nil || c.Kind != keyed.Move || string(c.Key) != "k" || string(c.Value) != "v" || c.Version != 3 || c.ExpiresAtMillis != 99 {
		t.Errorf("%+v, %v", c, err)
	}
	sum := binary.BigEndian.AppendUint64(nil, 1<<63+5)
	c, err = CounterDecoder(EncodeCheckpoint(nil, keyed.Entry{Key: []byte("k"), Value: sum, Version: 3}), 20, unknownBefore)
	if err != nil || c.Kind != keyed.Move || string(c.Key) != "k" || !bytes.Equal(c.Value, sum) || c.Version != 3 || c.ExpiresAtMillis != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, r := range someRecords() {
		f.Add(AppendRecord(nil, r)[lengthPrefix:])
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := DecodeRecord(payload)
		var broken *RecordError
		if err != nil && !errors.As(err, &broken) {
			t.Fatalf("%T: %v", err, err)
		}
		if err == nil && !bytes.Equal(AppendRecord(nil, r)[lengthPrefix:], payload) {
			t.Fatalf("%x decodes to %+v, which encodes differently", payload, r)
		}
		if change, again := CacheDecoder(payload, 1, unknownBefore); (again == nil) != (err == nil) || err == nil && !bytes.Equal(change.Key, r.Key) {
			t.Fatalf("%x is %+v, %v; and a change %+v, %v", payload, r, err, change, again)
		}
	})
}

func FuzzRecords(f *testing.F) {
	var all []byte
	for _, r := range someRecords() {
		all = AppendRecord(all, r)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, body []byte) {
		var again []byte
		for r, err := range Records(body) {
			if err != nil {
				var broken *RecordError
				if !errors.As(err, &broken) || !bytes.HasPrefix(body, again) {
					t.Fatalf("%x: %v behind %x", body, err, again)
				}
				return
			}
			again = AppendRecord(again, r)
		}
		if !bytes.Equal(again, body) {
			t.Fatalf("%x is read, and written as %x", body, again)
		}
	})
}

func FuzzDecodeCounterRecord(f *testing.F) {
	for _, r := range someCounterRecords() {
		f.Add(AppendCounterRecord(nil, r)[lengthPrefix:])
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := DecodeCounterRecord(payload)
		var broken *CounterRecordError
		if err != nil && !errors.As(err, &broken) {
			t.Fatalf("%T: %v", err, err)
		}
		if err == nil && !bytes.Equal(AppendCounterRecord(nil, r)[lengthPrefix:], payload) {
			t.Fatalf("%x decodes to %+v, which encodes differently", payload, r)
		}
		if change, again := CounterDecoder(payload, 1, unknownBefore); (again == nil) != (err == nil) || err == nil && sumOf(change.Value) != r.Sum {
			t.Fatalf("%x is %+v, %v; and a change %+v, %v", payload, r, err, change, again)
		}
	})
}
