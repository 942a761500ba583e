package protocoldoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/wire"
)

// members are those of a message by their path, as the page writes them: "u64", "u64?" for one that may be absent, "u64 = 0" for one whose
// absence means that. The members of an object in it follow behind a point, also when it is one of a list.
type members map[string]string

var (
	decodes = regexp.MustCompile(`case "([a-z_]+)":\n\t\treturn &`)
	encodes = regexp.MustCompile(`\) MessageType\(\) string \{ return "([a-z_]+)" \}`)
)

// samples is one message of each type that package wire decodes, as it stands in the vectors.
func samples(t testing.TB) map[string]wire.Message {
	t.Helper()
	out := map[string]wire.Message{}
	for _, text := range vectorTexts(t) {
		m, err := wire.DecodeJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		out[m.MessageType()] = m
	}
	sources, err := filepath.Glob("../../wire/*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, pattern := range []*regexp.Regexp{decodes, encodes} {
			for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
				named[m[1]] = true
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(out)), slices.Sorted(maps.Keys(named)); !slices.Equal(got, want) {
		t.Fatalf("the vectors have the types\n%v, and package wire has\n%v", got, want)
	}
	return out
}

// variants is how many values the types have that are one of several things, each with members of its own.
var variants = map[string]int{
	"StartKind": 3, "CursorReason": 2, "RefusedKind": 6, "AckMode": 3, "ResourceKind": 2, "Routing": 2,
}

const mostVariants = 6

// filled is a message of the type of m in which everything is set.
func filled(t testing.TB, m wire.Message, variant int) wire.Message {
	t.Helper()
	v := reflect.New(reflect.TypeOf(m).Elem())
	fill(t, v.Elem(), variant)
	return v.Interface().(wire.Message)
}

func fill(t testing.TB, v reflect.Value, variant int) {
	t.Helper()
	switch v.Interface().(type) {
	case wire.Region:
		v.SetBytes(wire.AppendPayload(nil, []byte("x")))
		return
	case wire.CacheCondition:
		if variant%2 == 0 {
			return
		}
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(variant%2 == 0)
	case reflect.Uint8:
		n := variants[v.Type().Name()]
		if n == 0 {
			t.Fatalf("nobody knows how many values %s has", v.Type())
		}
		v.SetUint(uint64(variant % n))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Int64:
		v.SetInt(1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("1")) // which is JSON too
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), variant)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); v.Type().Field(i).Name == "Set" { // of an Opt
				f.SetBool(true)
			} else {
				fill(t, f, variant)
			}
		}
	default:
		t.Fatalf("nobody knows how to fill a %s", v.Type())
	}
}

// ofCodec finds out what members a type has by asking the codec: it encodes a message with everything in it, and decodes that again without
// a member, or with another value for it.
func ofCodec(t testing.TB, m wire.Message) members {
	t.Helper()
	out, seen := members{}, map[string]bool{}
	for variant := range mostVariants {
		text := wire.AppendJSON(nil, filled(t, m, variant))
		if seen[string(text)] {
			continue
		}
		seen[string(text)] = true
		whole := object(t, text)
		if _, err := wire.DecodeJSON(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		p := prober{t: t, whole: whole, out: out}
		p.walk("", whole)
	}
	return out
}

func object(t testing.TB, text []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// prober asks the codec what the members of a message are; whole is that message, and is as it was when a question is answered.
type prober struct {
	t     testing.TB
	whole map[string]any
	out   members
}

func (p *prober) walk(path string, o map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		at := path + name
		if at == "type" {
			continue
		}
		p.out[at] = p.typ(at, o, name) + p.absence(o, name)
	}
}

// taken reports what the codec makes of the message as it is now; false if it refuses it.
func (p *prober) taken() (wire.Message, bool) {
	text, err := json.Marshal(p.whole)
	if err != nil {
		p.t.Fatal(err)
	}
	m, err := wire.DecodeJSON(text)
	return m, err == nil
}

// with reports the same of the message with another value in one place.
func (p *prober) with(set func(v any), was, v any) (wire.Message, bool) {
	set(v)
	defer set(was)
	return p.taken()
}

func (p *prober) typ(at string, o map[string]any, name string) string {
	set := func(v any) { o[name] = v }
	switch v := o[name].(type) {
	case map[string]any:
		p.walk(at+".", v)
		if p.isChoice(set, v) {
			return "choice"
		}
		return "object"
	case []any:
		if inner, ok := v[0].(map[string]any); ok {
			p.walk(at+".", inner)
			return "list"
		}
		return "list of " + p.scalar(func(x any) { v[0] = x }, v[0])
	default:
		return p.scalar(set, v)
	}
}

// orNull says that a member which has to be there may be null.
func (p *prober) orNull(o map[string]any, name string) string {
	if _, ok := p.with(func(v any) { o[name] = v }, o[name], nil); ok {
		return " or null"
	}
	return ""
}

// isChoice reports whether an object is one of several things, of which others are words.
func (p *prober) isChoice(set func(v any), was any) bool {
	for _, word := range []string{"latest", "absent", "unknown_producer"} {
		if _, ok := p.with(set, was, word); ok {
			return true
		}
	}
	return false
}

// scalar is the first type all of whose values are taken.
func (p *prober) scalar(set func(v any), was any) string {
	for _, x := range []struct {
		typ    string
		values []any
	}{
		{"any", []any{"*", json.Number("1.5")}},
		{"string", []any{"*"}},
		{"base64", []any{"YQ=="}},
		{"u64", []any{json.Number("18446744073709551615")}},
		{"i64", []any{json.Number("-1")}},
		{"u32", []any{json.Number("4294967295")}},
		{"u16", []any{json.Number("65535")}},
		{"bool", []any{true, false}},
	} {
		all := true
		for _, v := range x.values {
			_, ok := p.with(set, was, v)
			all = all && ok
		}
		if all {
			return x.typ
		}
	}
	return "choice"
}

// absence is "" for a member that has to be there, " or null" for one that has to be there and may be null, " = v" for one whose absence is
// the same as v, and "?" for all others.
func (p *prober) absence(o map[string]any, name string) string {
	was := o[name]
	set := func(v any) { o[name] = v }
	delete(o, name)
	without, ok := p.taken()
	set(was)
	if !ok {
		return p.orNull(o, name)
	}
	for _, v := range []any{json.Number("0"), false, []any{}, "none", "modulo"} {
		if m, ok := p.with(set, was, v); ok && reflect.DeepEqual(m, without) {
			text, err := json.Marshal(v)
			if err != nil {
				p.t.Fatal(err)
			}
			return " = " + strings.Trim(string(text), `"`)
		}
	}
	return "?"
}

// vectorTexts are the JSON messages of wire/testdata/vectors.json.
func vectorTexts(t testing.TB) (out []string) {
	t.Helper()
	text, err := os.ReadFile("../../wire/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ JSON []struct{ Text string } }
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	for _, m := range v.JSON {
		out = append(out, m.Text)
	}
	return out
}

// all are the tables of the page whose header begins so; none is a failure.
func (p page) all(t testing.TB, header ...string) (out []table) {
	t.Helper()
	for _, x := range p.tables {
		if len(x.header) >= len(header) && slices.Equal(x.header[:len(header)], header) {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		t.Fatalf("the page has no table that begins with %v", header)
	}
	return out
}

// ofPage are the members of each message as the tables of a page have them; mistakes says what is wrong with these.
func ofPage(t testing.TB, p page) (out map[string]members, mistakes []string) {
	t.Helper()
	out = map[string]members{}
	for _, table := range p.all(t, "message", "member", "type") {
		var messages []string
		for _, row := range table.rows {
			if named := words(row[0]); len(named) > 0 {
				messages = named
			}
			for _, message := range messages {
				for _, member := range words(row[1]) {
					if out[message] == nil {
						out[message] = members{}
					}
					if _, twice := out[message][member]; twice {
						mistakes = append(mistakes, fmt.Sprintf("%s: %s is there twice", message, member))
					}
					out[message][member] = row[2]
				}
			}
		}
	}
	return out, mistakes
}

// differences holds what a page says of messages to what the codec says.
func differences(t testing.TB, p page, codec map[string]members) []string {
	t.Helper()
	shown, mistakes := ofPage(t, p)
	for message, want := range codec {
		for member, typ := range want {
			if got, ok := shown[message][member]; !ok {
				mistakes = append(mistakes, fmt.Sprintf("%s: there is no row for %s, which is %s", message, member, typ))
			} else if got != typ {
				mistakes = append(mistakes, fmt.Sprintf("%s: %s is %q on the page, and %q in the codec", message, member, got, typ))
			}
		}
	}
	for message, rows := range shown {
		for member := range rows {
			if _, ok := codec[message][member]; !ok {
				mistakes = append(mistakes, fmt.Sprintf("%s has no member %s", message, member))
			}
		}
	}
	slices.Sort(mistakes)
	return mistakes
}

func codecMembers(t testing.TB) map[string]members {
	t.Helper()
	out := map[string]members{}
	for typ, m := range samples(t) {
		out[typ] = ofCodec(t, m)
	}
	return out
}

func TestEveryMemberOfEveryMessageHasARowWithItsTypeAndWhetherItMayBeAbsent(t *testing.T) {
	for _, mistake := range differences(t, protocol(t), codecMembers(t)) {
		t.Error(mistake)
	}
}

// A page that lacks a member, has one too many, or says another type of one, is found.
func TestAPageThatFallsBehindIsFound(t *testing.T) {
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	codec := codecMembers(t)
	for row, c := range map[string]struct{ instead, want string }{
		"| | `wait_ms` | u64 = 0 |":   {"| | | u64 = 0 |", "group_poll: there is no row for wait_ms, which is u64 = 0"},
		"| | `extend_ms` | u64 |":     {"| | `extend_ms` | u64? |", `group_extend: extend_ms is "u64?" on the page, and "u64" in the codec`},
		"| | `retained_count` | u64?": {"| | `retained_count`, `retained_bytes` | u64?", "cache_watch_started has no member retained_bytes"},
		"| `counter_add` | `delta` |": {"| `counter_get` | `delta` |", "counter_add: there is no row for delta, which is i64"},
	} {
		if strings.Count(string(text), row) != 1 {
			t.Errorf("the page has %q not once", row)
			continue
		}
		found := differences(t, parse(strings.Replace(string(text), row, c.instead, 1)), codec)
		if !slices.Contains(found, c.want) {
			t.Errorf("%s instead of %s: %v", c.instead, row, found)
		}
	}
	codec["another"] = members{"x": "u64"} // and so is a message that is new
	if found := differences(t, parse(string(text)), codec); !slices.Equal(found, []string{"another: there is no row for x, which is u64"}) {
		t.Errorf("of a new message it is said %v", found)
	}
}

func TestEveryRequestHasARowWithItsAnswers(t *testing.T) {
	answered, given := map[string]int{}, map[string]bool{}
	known := samples(t)
	for _, table := range protocol(t).all(t, "request", "answer") {
		for _, row := range table.rows {
			for _, typ := range words(row[0]) {
				if answered[typ]++; wire.KindOfType(typ) == wire.KindUnknown {
					t.Errorf("line %d and on: %s is no request", table.line, typ)
				}
			}
			for _, typ := range words(row[1]) {
				given[typ] = true
				if known[typ] == nil || wire.KindOfType(typ) != wire.KindUnknown {
					t.Errorf("line %d and on: %s is no answer", table.line, typ)
				}
			}
		}
	}
	for typ := range known {
		if request := wire.KindOfType(typ) != wire.KindUnknown; request && answered[typ] != 1 {
			t.Errorf("%s has %d rows, want 1", typ, answered[typ])
		} else if !request && !given[typ] {
			t.Errorf("no row has the answer %s", typ)
		}
	}
}

// That they go through the codec and are vectors is in messages_test.go.
func TestEveryMessageIsShown(t *testing.T) {
	shown := map[string]bool{}
	for _, b := range protocol(t).of(t, "json") {
		for _, line := range b.lines {
			shown[object(t, []byte(line))["type"].(string)] = true
		}
	}
	shown["ok"] = true // as a frame, in hex
	for typ := range samples(t) {
		if !shown[typ] {
			t.Errorf("no %s is shown", typ)
		}
	}
}
