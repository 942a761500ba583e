package wire

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Inputs that try to make a decoder allocate more than they are worth.

// greedySize is about how long they are: well above the 64 KiB that any input is granted.
const greedySize = 3 << 15

func repeat(unit string) string { return strings.Repeat(unit, greedySize/len(unit)) }

// greedy holds the hand-made ones.
func greedy() map[string][]byte {
	names := `"tenant_id":"t","namespace":"n","stream":"s"`
	view := `{"type":"shard_inspect_info","request_id":1,"view":{"node_id":"","shards":0,"role":"","phase":"","serving":false,`
	list := func(entry string, n int) string { return `[` + strings.Repeat(entry+",", n-1) + entry + `]` }
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
		"brokers with names":       []byte(`{"type":"topology_view","brokers":[` + repeat(`{"node_id":"123456789","addr":"123456789"},`) + `{"node_id":"","addr":""}]}`),
		"owners":                   []byte(`{"type":"shard_owners_view","request_id":1,"owners":` + list(`{"shard":0,"generation":0}`, MaxShardOwners) + `}`),
		"too many owners":          []byte(`{"type":"shard_owners_view","request_id":1,"owners":[` + repeat(`{"shard":0,"generation":0},`) + `{}]}`),
		"owners that are numbers":  []byte(`{"type":"shard_owners_view","request_id":1,"owners":` + list(`1`, MaxShardOwners) + `}`),
		"stream records":           []byte(`{"type":"stream_records","request_id":1,"next_offset":0,"records":[` + repeat(`{"offset":0,"payload":"YQ==","timestamp_micros":0},`) + `{}]}`),
		"group records":            []byte(`{"type":"group_records","request_id":1,"records":` + list(`{"offset":0,"payload":""}`, MaxGroupRecords) + `}`),
		"dead letters":             []byte(`{"type":"group_dead_letter_list","request_id":1,"offsets":[` + ascendingText() + `]}`),
		"dead letters, all 0":      []byte(`{"type":"group_dead_letter_list","request_id":1,"offsets":[` + repeat(`0,`) + `0]}`),
		"deletes":                  []byte(`{"type":"commit",` + names + `,"entity_key":"","event":"","request_id":1,"changes":[` + repeat(`{"op":"delete","key":"123456789"},`) + `{}]}`),
		"puts":                     []byte(`{"type":"commit",` + names + `,"entity_key":"","event":"","request_id":1,"changes":[` + repeat(`{"op":"put","key":"ab","value":"AA=="},`) + `{}]}`),
		"replicas":                 []byte(view + `"replicas":` + list(`{"node_id":"","role":""}`, MaxShardReplicas) + `}}`),
		"nodes in a fence":         []byte(view + repeat(`"fence":{"took":`+list(`""`, MaxShardReplicas)+`},`) + `"fence":{}}}`),
		"nodes given often":        []byte(view + `"fence":{` + repeat(`"took":`+list(`""`, MaxShardReplicas)+`,`) + `"took":[]}}}`),
		"views":                    []byte(`{"type":"shard_inspect_info",` + repeat(`"view":{"fence":{"took":`+list(`""`, MaxShardReplicas)+`}},`) + `"view":{}}`),
		"reasons":                  []byte(`{"type":"publish_refused",` + repeat(`"reason":{"not_leader":{"node_id":"123456789"}},`) + `"reason":""}`),
		"unknown members":          []byte(`{` + repeat(`"\n":[{}],`) + `"type":"ok"}`),
		"no JSON":                  bytes.Repeat([]byte("{"), greedySize),
		"no UTF-8":                 bytes.Repeat([]byte{0xff}, greedySize),
	}
}

// ascendingText is the shortest long text of offsets in order.
func ascendingText() string {
	text := []byte{'0'}
	for i := uint64(1); len(text) < greedySize; i++ {
		text = appendUint(append(text, ','), i)
	}
	return string(text)
}

// fullest returns the longest text of each message type in the vectors: the one with most members.
func fullest(t *testing.T) []string {
	t.Helper()
	longest := map[string]int{}
	var texts []string
	for _, v := range loadVectors(t).JSON {
		typ, _, _ := PeekJSON([]byte(v.Text))
		at, known := longest[typ]
		switch {
		case !known:
			longest[typ] = len(texts)
			texts = append(texts, v.Text)
		case len(v.Text) > len(texts[at]):
			texts[at] = v.Text
		}
	}
	return texts
}

// swollen returns the message with its members repeated many times over.
func swollen(text string) []byte {
	typ, _, _ := PeekJSON([]byte(text))
	head := `{"type":"` + typ + `"`
	members := strings.TrimSuffix(strings.TrimPrefix(text, head), "}")
	if members == "" {
		members = `,"x":1`
	}
	return []byte(head + repeat(members) + "}")
}

// padded returns the message once for each of its arrays and each filling, the array filled up with it.
func padded(text string) [][]byte {
	var all [][]byte
	for start, end := range arraysOf(text) {
		first := text[start+1 : end]
		for _, filling := range []string{`0`, `""`, `{}`, first} {
			if filling != "" {
				all = append(all, []byte(text[:start+1]+repeat(filling+",")+filling+text[end:]))
			}
		}
	}
	return all
}

// arraysOf yields where the arrays of a JSON text open and close.
func arraysOf(text string) func(func(start, end int) bool) {
	return func(yield func(start, end int) bool) {
		for i := range text {
			if text[i] != '[' {
				continue
			}
			s := scanner{in: []byte(text), pos: i}
			if s.skip(); s.err == nil && !yield(i, s.pos-1) {
				return
			}
		}
	}
}

// corpus returns the byte strings of every file of the kept corpora.
func corpus(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/fuzz/*/*")
	if err != nil || len(files) < 23*2 {
		t.Fatalf("%d corpus files, %v", len(files), err)
	}
	inputs := map[string][]byte{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			quoted, ok := strings.CutPrefix(strings.TrimSpace(line), "[]byte(")
			if !ok {
				continue
			}
			input, err := strconv.Unquote(strings.TrimSuffix(quoted, ")"))
			if err != nil {
				t.Fatalf("%s: %s: %v", name, line, err)
			}
			inputs[name] = []byte(input)
		}
		if inputs[name] == nil {
			t.Errorf("%s holds no bytes", name)
		}
	}
	return inputs
}
