package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestJSONMistakesNameMessageMemberAndRemedy(t *testing.T) {
	tests := []struct{ text, want string }{
		{`{"type":"cache_get","tenant_id":"t","namespace":"n","cache":"c"}`, `decode cache_get: key: is missing`},
		{`{"type":"cache_ok","request_id":1.5}`, `decode cache_ok: request_id: 1.5 is no integer between 0 and 18446744073709551615`},
		{`{"type":"auth","tenant_id":"t","token":7}`, `decode auth: token: a string expected, found '7' at byte 39`},
		{`{"type":"error","message":"m","detail":{"retry_after_ms":"x"}}`, `decode error: detail.retry_after_ms: an integer expected, found '"' at byte 57`},
		{`{"type":"shard_owners_view","owners":[{"shard":0}],"request_id":1}`, `decode shard_owners_view: owners.generation: is missing`},
		{`{"type":"ok"} {}`, `decode ok: one object expected and nothing after it, found '{' at byte 14`},
		{`{"type":"publish","tenant_id":"t","namespace":"n","stream":"s","payload":"YQ"}`, `decode publish: payload: no padded standard base64`},
		{`{"type":"ok","type":"ok"}`, `decode ok: type: given twice`},
		{`nonsense`, `decode JSON message: '{' expected to open an object, found 'n' at byte 0`},
		{`{"type":"subscribe","tenant_id":"t","namespace":"n","stream":"s","start":{"from":1}}`, `decode subscribe: start: an object with the one member "offset" expected`},
		{`{"type":"publish","tenant_id":"t","namespace":"n","stream":"s","payload":"","ack":null,"ack":"no"}`, `decode publish: ack: "no" is none of "none", "per_message", "per_batch"`},
		{`{"type":"auth_ok","server_flags":1,"listener_ports":null,"listener_ports":[70000]}`, `decode auth_ok: listener_ports: 70000 is no integer between 0 and 65535`},
		{`{"type":"stream_shards_view","shards":1,"request_id":1,"routing":null,"routing":"x"}`, `decode stream_shards_view: routing: "x" is neither "modulo" nor "jump_hash"`},
		{`{"type":"shard_owners","tenant_id":"t","namespace":"n","name":"s","kind":"queue","request_id":1}`, `decode shard_owners: kind: "queue" is neither "stream" nor "cache"`},
		{`{"type":"publish_refused","request_id":1,"reason":"x"}`, `decode publish_refused: reason: "x" is no reason that is known, or its data is missing`},
		{`{"type":"publish_refused","request_id":1,"reason":{"sequence_gap":{"expected":-1}}}`, `decode publish_refused: reason.expected: -1 is no integer`},
		{`{"type":"publish_refused","request_id":1,"reason":{"sequence_gap":{"expected":1},"x":1}}`, `decode publish_refused: reason: '}' expected after the reason, found ',' at byte 80`},
		{`{"type":"cache_put_if","tenant_id":"t","namespace":"n","cache":"c","key":"k","value":"","condition":"never"}`, `decode cache_put_if: condition: "never" is neither "absent" nor {"version":n}`},
		{`{"type":"cache_put_if","tenant_id":"t","namespace":"n","cache":"c","key":"k","value":"","condition":{"x":1}}`, `decode cache_put_if: condition: an object with the one member "version" expected`},
		{`{"type":"counter_add","tenant_id":"t","namespace":"n","cache":"c","key":"k","delta":"1"}`, `decode counter_add: delta: an integer expected, found '"' at byte 84`},
		{`{"type":"counter_value","value":9223372036854775808}`, `decode counter_value: value: 9223372036854775808 is no integer between -9223372036854775808 and 9223372036854775807`},
		{`{"type":"group_deleted","existed":1}`, `decode group_deleted: existed: true or false expected, found '1' at byte 34`},
		{`{"type":"group_dead_letter_list","offsets":[7,3]}`, `decode group_dead_letter_list: offsets: 3 follows 7; the lowest offset comes first`},
		{`{"type":"group_records","records":[{"offset":1}]}`, `decode group_records: records.payload: is missing`},
		{`{"type":"group_records","records":[],"records":[]}`, `decode group_records: records: given twice`},
		{`{"type":"commit","tenant_id":"t","namespace":"n","stream":"s","changes":[{"op":"put","key":"k"}]}`, `decode commit: changes.value: is missing`},
		{`{"type":"commit","tenant_id":"t","namespace":"n","stream":"s","changes":[{"op":"swap"}]}`, `decode commit: changes.op: "swap" is neither "put" nor "delete"`},
		{`{"type":"shard_inspect_info","view":{"lease":{}}}`, `decode shard_inspect_info: view.lease.held: is missing`},
		{`{"type":"shard_inspect_info","view":{"assignment":{"replicas":[1]}}}`, `decode shard_inspect_info: view.assignment.replicas: a string expected`},
		{`{"type":"shard_inspect_info","view":{},"view":{}}`, `decode shard_inspect_info: view.node_id: is missing`},
		{`{"type":"subscriptions_list","request_id":1,"cursor":{},"cursor":{}}`, `decode subscriptions_list: cursor.tenant_id: is missing`},
		{`{"type":"subscriptions_list","request_id":1,"filter":null,"filter":{}}`, `decode subscriptions_list: filter: given twice`},
		{`{"type":"extension","name":"\u00zz"}`, `decode extension: name: bad escape in a string at byte 28`},
		{`{"type":"nothing_known","x":}`, `decode JSON message: a value expected, found '}' at byte 28`},
		{`{"a":1}`, `decode JSON message: type: is missing`},
	}
	for _, tt := range tests {
		_, err := DecodeJSON([]byte(tt.text))
		var je *JSONError
		if !errors.As(err, &je) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s\ngot  %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestTypesThatNobodyKnowsAreToldFromMistakes(t *testing.T) {
	tests := []struct {
		text string
		want Unsupported
	}{
		{`{"type":"time_travel","request_id":18446744073709551615}`, Unsupported{RequestType: "time_travel", RequestID: Some(uint64(1<<64 - 1))}},
		{`{"request_id":-4,"type":"Commit"}`, Unsupported{RequestType: "Commit"}},
		{`{"type":"time_travel","request_id":{"a":[1]}}`, Unsupported{RequestType: "time_travel"}},
	}
	for _, tt := range tests {
		_, err := DecodeJSON([]byte(tt.text))
		var ue *UnknownTypeError
		if !errors.As(err, &ue) || ue.Kind != KindUnknown || *ue.Answer() != tt.want || errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %#v", tt.text, err)
		}
	}
	m, err := DecodeJSON([]byte(`{"type":"extension","name":"x","request_id":4,"body":[1, 2]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Unsupported{RequestType: "extension", Extension: Some("x"), RequestID: Some(uint64(4))}
	if e := m.(*Extension); *e.Answer() != want || string(e.Body) != "[1, 2]" {
		t.Errorf("%+v, body %s", e.Answer(), e.Body)
	}
}

func TestTheRequestIDOfAMessageIsTheOneInItsText(t *testing.T) {
	with := 0
	for _, v := range loadVectors(t).JSON {
		m, err := DecodeJSON([]byte(v.Text))
		if err != nil {
			t.Fatal(err)
		}
		_, want, _ := PeekJSON([]byte(v.Text))
		if got := RequestIDOf(m); got != want {
			t.Errorf("%s: %+v, want %+v", v.Text, got, want)
		}
		if want.Set {
			with++
		}
	}
	if with < 60 {
		t.Errorf("only %d vectors have a request id", with)
	}
	if got := RequestIDOf(&GroupAck{GroupTarget: GroupTarget{RequestID: 1<<64 - 1}}); got != Some(uint64(1<<64-1)) {
		t.Errorf("of a message that is not sent yet: %+v", got)
	}
}

func TestTheRequestIDIsFoundInWhatDoesNotDecode(t *testing.T) {
	tests := []struct {
		text, typ string
		id        Opt[uint64]
		fails     bool
	}{
		{`{"type":"publish","request_id":7,"payload":1}`, "publish", Some(uint64(7)), false},
		{`{"request_id":7,"x":[1,{"request_id":8}],"type":"publish"}`, "publish", Some(uint64(7)), false},
		{`{"type":"publish","request_id":7,"payload":`, "publish", Some(uint64(7)), true},
		{`{"type":"publish","payload":nope,"request_id":7}`, "publish", Opt[uint64]{}, true},
		{`{"type":"publish","request_id":7.0}`, "publish", Opt[uint64]{}, false},
		{`{"type":"publish","request_id":null}`, "publish", Opt[uint64]{}, false},
		{`{"request_id":7}`, "", Some(uint64(7)), true},
		{"{\"type\":\"\xff\"}", "", Opt[uint64]{}, true},
		{``, "", Opt[uint64]{}, true},
	}
	for _, tt := range tests {
		typ, id, err := PeekJSON([]byte(tt.text))
		if typ != tt.typ || id != tt.id || (err != nil) != tt.fails {
			t.Errorf("%s: %q, %+v, %v", tt.text, typ, id, err)
		}
	}
}

func TestDecodedMessagesOwnTheirBytes(t *testing.T) {
	for _, v := range loadVectors(t).JSON {
		payload := []byte(v.Text)
		m, err := DecodeJSON(payload)
		if err != nil {
			t.Fatal(err)
		}
		clear(payload)
		if got := string(AppendJSON(nil, m)); got != v.Text {
			t.Errorf("%s became %s when its payload was reused", v.Text, got)
		}
	}
}

// A decoder shares the names of a message with the next one, never with what it read them from.
func TestMessagesOfADecoderOwnTheirBytesAndShareTheirNames(t *testing.T) {
	var d Decoder
	var all []*CacheGet
	text := []byte(`{"type":"cache_get","tenant_id":"t1","namespace":"n1","cache":"c1","key":"k1"}`)
	for range 2 {
		for _, name := range []string{"c1", "c1", "c2"} {
			payload := bytes.ReplaceAll(text, []byte(`"c1"`), []byte(`"`+name+`"`))
			m, err := d.DecodeJSON(payload)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, m.(*CacheGet))
			clear(payload)
		}
	}
	for i, m := range all {
		if want := (CacheGet{TenantID: "t1", Namespace: "n1", Cache: []string{"c1", "c1", "c2"}[i%3], Key: "k1"}); *m != want {
			t.Errorf("message %d is %+v, want %+v", i, *m, want)
		}
	}
	payload := slices.Clone(text)
	if n := testing.AllocsPerRun(100, func() { _, _ = d.DecodeJSON(payload) }); n > 2 {
		t.Errorf("%v allocations, 2 are allowed: message and key", n)
	}
}

// Members come in any order, and those that nobody knows stand anywhere: the message is the same.
func TestMembersInAnyOrderAreTheSameMessage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, v := range loadVectors(t).JSON {
		want, err := DecodeJSON([]byte(v.Text))
		if err != nil {
			t.Fatal(err)
		}
		members := membersOf(t, v.Text)
		for range 10 {
			random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
			at := random.IntN(len(members) + 1)
			text := "{" + strings.Join(slices.Insert(slices.Clone(members), at, `"nobody knows":[{}]`), ",") + "}"
			if m, err := DecodeJSON([]byte(text)); err != nil || !reflect.DeepEqual(m, want) {
				t.Errorf("%s: %+v, %v; want %+v", text, m, err, want)
			}
		}
	}
}

// membersOf cuts an object into its members.
func membersOf(t *testing.T, text string) (members []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		members = append(members, fmt.Sprintf("%q:%s", name, value))
	}
	return members
}

func TestEveryCutOfEveryMessageIsRefused(t *testing.T) {
	for _, v := range loadVectors(t).JSON {
		for n := range v.Text {
			if m, err := DecodeJSON([]byte(v.Text[:n])); err == nil {
				t.Fatalf("%s decoded as %v", v.Text[:n], m)
			}
		}
	}
}

func TestEncodedStringsAreReadByAnotherParser(t *testing.T) {
	texts := []string{"", "plain", "é日本😀", "\"\\/\b\f\n\r\t\x00\x1f\x7f\u2028", "bad \xff\xc3 utf8 \xed\xa0\x80", strings.Repeat("\xff", 9), "\ufffd"}
	for _, s := range texts {
		text := AppendJSON(nil, &Extension{Name: s})
		if !utf8.Valid(text) {
			t.Errorf("%q gives invalid UTF-8: %q", s, text)
		}
		var other struct{ Name string }
		if err := json.Unmarshal(text, &other); err != nil || other.Name != strings.ToValidUTF8(s, "\ufffd") && other.Name != repaired(s) {
			t.Errorf("%q reads as %q, %v", s, other.Name, err)
		}
		m, err := DecodeJSON(text)
		if err != nil || m.(*Extension).Name != other.Name {
			t.Errorf("%q comes back as %+v, %v", s, m, err)
		}
	}
}

func TestPlainStopsAtTheFirstByteThatNeedsCare(t *testing.T) {
	naive := func(b []byte) int {
		for i, c := range b {
			if c == '"' || c == '\\' || c < 0x20 {
				return i
			}
		}
		return len(b)
	}
	for first := range 256 {
		for _, second := range "\x00\x1f !\"#[\\]a\x7f\u0080\u00ff" { // next to each other, where a borrow would show
			for at := range 9 {
				b := []byte("aaaaaaaaaaa")
				b[at], b[at+1] = byte(first), byte(second)
				if got, want := plain(b), naive(b); got != want {
					t.Fatalf("%q: %d, want %d", b, got, want)
				}
			}
		}
	}
}

// repaired replaces each byte that is no UTF-8.
func repaired(s string) string { return string([]rune(s)) }

func TestNestingIsBounded(t *testing.T) {
	nest := func(n int, open, shut string) []byte {
		return []byte(`{"type":"ok","x":` + strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) + `}`)
	}
	for _, pair := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		if _, err := DecodeJSON(nest(MaxJSONDepth, pair[0], pair[1])); err != nil {
			t.Errorf("%d levels: %v", MaxJSONDepth, err)
		}
		for _, n := range []int{MaxJSONDepth + 1, 100_000} {
			if _, err := DecodeJSON(nest(n, pair[0], pair[1])); !errors.Is(err, ErrMalformed) {
				t.Errorf("%d levels: %v", n, err)
			}
		}
	}
}

func TestLimitsOfTextsHoldInJSON(t *testing.T) {
	name := strings.Repeat("n", MaxNameBytes)
	key := strings.Repeat("QUFB", MaxKeyBytes/3) // 65535 bytes
	tests := []struct {
		text string
		ok   bool
	}{
		{`{"type":"auth","tenant_id":"` + name + `","token":""}`, true},
		{`{"type":"auth","tenant_id":"` + name + `n","token":""}`, false},
		{`{"type":"auth","tenant_id":"` + strings.Repeat(`\u006e`, MaxNameBytes) + `","token":""}`, true},
		{`{"type":"auth","tenant_id":"` + strings.Repeat(`\u006e`, MaxNameBytes+1) + `","token":""}`, false},
		{`{"type":"auth","tenant_id":"","token":"` + strings.Repeat("t", MaxTokenBytes) + `"}`, true},
		{`{"type":"auth","tenant_id":"","token":"` + strings.Repeat("t", MaxTokenBytes+1) + `"}`, false},
		{`{"type":"publish","tenant_id":"t","namespace":"n","stream":"s","payload":"","key":"` + key + `"}`, true},
		{`{"type":"publish","tenant_id":"t","namespace":"n","stream":"s","payload":"","key":"` + key + `QQ=="}`, false},
		{`{"type":"state_get","tenant_id":"t","namespace":"n","stream":"s","entity_key":"` + key + `","key":"","request_id":1}`, true},
		{`{"type":"state_get","tenant_id":"t","namespace":"n","stream":"s","entity_key":"` + key + `QQ==","key":"","request_id":1}`, false},
		{`{"type":"` + strings.Repeat("x", MaxTypeBytes+1) + `"}`, false},
		{`{"` + strings.Repeat(`\u0078`, 1000) + `":1,"type":"ok"}`, true},
	}
	for i, tt := range tests {
		if _, err := DecodeJSON([]byte(tt.text)); (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

func TestJSONPublishesTakeTheWayOfBinaryOnes(t *testing.T) {
	text := `{"type":"publish_batch","tenant_id":"t1","namespace":"ns","stream":"s","payloads":["YQ==","YmM="],"key":"","request_id":5,"ack":"per_batch"}`
	want := Publish{RequestID: 5, HasRequestID: true, Ack: AckPerBatch, Keyed: true, Key: []byte{}, Tenant: []byte("t1"),
		Namespace: []byte("ns"), Stream: []byte("s"), Count: 2, Region: regionOf("a", "bc"), PayloadBytes: 3}
	m, err := DecodeJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.(*PublishBatchMessage).Publish(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	m, err = DecodeJSON([]byte(`{"type":"publish","tenant_id":"t1","namespace":"ns","stream":"s","payload":"YQ=="}`))
	if err != nil {
		t.Fatal(err)
	}
	want = Publish{Tenant: []byte("t1"), Namespace: []byte("ns"), Stream: []byte("s"), Count: 1, Region: regionOf("a"), PayloadBytes: 1}
	if got := m.(*PublishMessage).Publish(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestAnExtensionBodyMustBeJSON(t *testing.T) {
	for _, body := range []string{"", "{", "1 2", "nope"} {
		if !panics(func() { AppendJSON(nil, &Extension{Name: "x", Body: []byte(body)}) }) {
			t.Errorf("%q was encoded", body)
		}
	}
}

func TestOptOrGivesTheOtherOnlyWhenUnset(t *testing.T) {
	if Some(0).Or(5) != 0 || (Opt[int]{}).Or(5) != 5 {
		t.Error("Or must ask Set, not the value")
	}
}
