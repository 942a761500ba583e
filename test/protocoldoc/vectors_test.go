package protocoldoc

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/felixd/felixd/wire"
)

// vectors are the frames of wire/testdata/vectors.json by name; JSON frames are named by their type.
func vectors(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../wire/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Frames []struct{ Name, Hex string }
		JSON   []struct{ Text, Hex string }
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string, len(v.Frames)+1)
	for _, f := range v.Frames {
		out[f.Name] = f.Hex
	}
	for _, m := range v.JSON {
		if m.Text == `{"type":"ok"}` {
			out["ok"] = m.Hex
		}
	}
	return out
}

// frame is the bytes of a hex block.
func (b block) frame(t testing.TB) []byte {
	t.Helper()
	var out []byte
	for i, line := range b.lines {
		digits, _ := split(line)
		raw, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			t.Fatalf("line %d: %q is no hex: %v", b.line+1+i, digits, err)
		}
		out = append(out, raw...)
	}
	return out
}

// split parts a line of a hex block into its digits and what it says of them, behind two spaces.
func split(line string) (digits, says string) {
	digits, says, _ = strings.Cut(line, "  ")
	return digits, strings.TrimSpace(says)
}

// mission 179, mission 181, mission 182
func TestEachFrameOfThePageIsAVectorAndGoesThroughTheCodecBothWays(t *testing.T) {
	known := vectors(t)
	for _, b := range protocol(t).of(t, "hex") {
		t.Run(b.title, func(t *testing.T) {
			frame := b.frame(t)
			if want := known[b.title]; want != hex.EncodeToString(frame) {
				t.Errorf("line %d: shows\n%x, and the vector of that name is\n%s", b.line, frame, want)
			}
			if again := throughCodec(t, frame); !bytes.Equal(again, frame) {
				t.Errorf("line %d: encodes to\n%x, want\n%x", b.line, again, frame)
			}
		})
	}
}

// throughCodec decodes a frame as its receiver would, and encodes what that gave.
func throughCodec(t testing.TB, frame []byte) []byte {
	t.Helper()
	h, err := wire.ParseHeader(frame, wire.MaxPayload)
	if err != nil {
		t.Fatal(err)
	}
	payload := frame[wire.HeaderSize:]
	if int(h.Length) != len(payload) {
		t.Fatalf("the header announces %d bytes, %d are there", h.Length, len(payload))
	}
	switch {
	case h.Flags == 0:
		m, err := wire.DecodeJSON(payload)
		if err != nil {
			t.Fatal(err)
		}
		return wire.AppendJSONFrame(nil, m)
	case h.Flags.CheckClientToServer() == nil:
		var p wire.Publish
		if err := p.Decode(h.Flags, payload); err != nil {
			t.Fatal(err)
		}
		return wire.AppendPublish(nil, &p)
	case h.Flags.Has(wire.FlagPublishAck):
		a, err := wire.DecodePublishAck(h.Flags, payload)
		if err != nil {
			t.Fatal(err)
		}
		return wire.AppendPublishAck(nil, &a, wire.Grant{Flags: wire.KnownFlags})
	}
	return eventsAgain(t, h.Flags, payload)
}

func eventsAgain(t testing.TB, flags wire.Flags, payload []byte) []byte {
	t.Helper()
	d, err := wire.DecodeEventBatch(flags, payload)
	if err != nil {
		t.Fatal(err)
	}
	e := wire.EventBatch{
		SubscriptionID: d.SubscriptionID, HasOffset: d.HasOffset, BaseOffset: d.BaseOffset, SkippedBefore: d.SkippedBefore,
		Publisher: d.Publisher, Timestamps: d.Timestamps, Count: d.Count,
	}
	for p, micros, ok := d.Next(); ok; p, micros, ok = d.Next() {
		e.TimestampMicros, e.Region = micros, wire.AppendPayload(e.Region, p)
	}
	return wire.AppendEventBatch(nil, flags, &e)
}

func TestTheFramesOfThePageShowEveryPartOfEveryLayout(t *testing.T) {
	var shown wire.Flags
	for _, b := range protocol(t).of(t, "hex") {
		h, err := wire.ParseHeader(b.frame(t), wire.MaxPayload)
		if err != nil {
			t.Fatalf("line %d: %v", b.line, err)
		}
		shown |= h.Flags
	}
	if missing := wire.KnownFlags &^ shown; missing != 0 {
		t.Errorf("no frame of the page has %s (0x%04x)", missing, uint16(missing))
	}
}

// What a line says of its bytes is checked without the codec: `name = 7`, `name = 0x0009`, or `name = u16 "text"` for a text
// behind its length.
func TestEachLineOfAFrameSaysWhatItsBytesAre(t *testing.T) {
	for _, b := range protocol(t).of(t, "hex") {
		for i, line := range b.lines {
			digits, says := split(line)
			says, _, _ = strings.Cut(says, ";")
			raw, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
			if err != nil {
				t.Fatalf("line %d: %v", b.line+1+i, err)
			}
			if err := agrees(raw, says, line); err != nil {
				t.Errorf("line %d: %v", b.line+1+i, err)
			}
		}
	}
}

func agrees(raw []byte, says, line string) error {
	if says == "header" {
		if want := fmt.Sprintf("header; %d bytes", number(raw[8:])); len(raw) != wire.HeaderSize || !strings.HasSuffix(line, want) {
			return fmt.Errorf("%q: want 12 bytes and %q", line, want)
		}
		return nil
	}
	_, value, ok := strings.Cut(says, " = ")
	if !ok {
		return fmt.Errorf("%q names no value", line)
	}
	width := map[string]int{"u8": 1, "u16": 2, "u32": 4}
	kind, text, prefixed := strings.Cut(value, " ")
	n := width[kind]
	if !prefixed || n == 0 {
		text, n = value, 0
	}
	if strings.HasPrefix(text, `"`) {
		var want string
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		if len(raw) < n || n > 0 && number(raw[:n]) != uint64(len(raw)-n) || string(raw[n:]) != want {
			return fmt.Errorf("%q: the bytes are a length of %d and %q", line, number(raw[:min(n, len(raw))]), raw[min(n, len(raw)):])
		}
		return nil
	}
	if got := number(raw); text != fmt.Sprint(got) && text != fmt.Sprintf("0x%04x", got) {
		return fmt.Errorf("%q: the bytes are %d", line, got)
	}
	return nil
}

// number is a big-endian unsigned integer of up to eight bytes.
func number(raw []byte) (n uint64) {
	for _, b := range raw {
		n = n<<8 | uint64(b)
	}
	return n
}

func TestALineThatSaysSomethingElseIsFound(t *testing.T) {
	for line, ok := range map[string]bool{
		`0007  x = 7`:             true,
		`0007  x = 8`:             false,
		`0009  x = 0x0009`:        true,
		`0002 7431  x = u16 "t1"`: true,
		`0003 7431  x = u16 "t1"`: false,
		`0002 7432  x = u16 "t1"`: false,
		`7431  x = "t1"`:          true,
		`00  x`:                   false,
		`464c5831 0001 0004 0000000f  header; 15 bytes`: true,
		`464c5831 0001 0004 0000000f  header; 16 bytes`: false,
	} {
		digits, says := split(line)
		says, _, _ = strings.Cut(says, ";")
		raw, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if err := agrees(raw, says, line); (err == nil) != ok {
			t.Errorf("%q: %v", line, err)
		}
	}
}
