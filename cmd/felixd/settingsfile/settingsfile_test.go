package settingsfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// unknown takes names of the letters a to c.
func unknown(name string) string {
	if name != "" && strings.Trim(name, "abc") == "" {
		return ""
	}
	return fmt.Sprintf("unknown key %q", name)
}

func TestPlainAndQuotedValuesAreReadAsTheyStand(t *testing.T) {
	for text, want := range map[string]string{
		"a: 4": "4", "a: 0x10": "0x10", "a: yes": "yes", "a: 1_000 # thousand": "1_000",
		"a: 'it''s # here'": "it's # here", `a: "two\nlines"`: "two\nlines", "a: ''": "",
		"'a': 4\r\n": "4", "---\na: 4\n...\n": "4", "{a: 4}": "4", "\ufeffa: 4": "4",
		"a: null and more": "null and more", "a: 'null'": "null", "a: 127.0.0.1:1": "127.0.0.1:1",
	} {
		if got, err := Parse("f", []byte(text), unknown); err != nil || len(got) != 1 || got["a"].Text != want {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "---\n", "# nothing\n", "\n\n"} {
		if got, err := Parse("f", []byte(text), unknown); err != nil || len(got) != 0 {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
}

func TestEveryMistakeIsToldWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nx: 2\n\ny: 3": "f:2: unknown key \"x\"\nf:4: unknown key \"y\"",
		"a: 1\nb: 2\na: 3":   "f:3: a is set in line 1 already; leave one of them out",
		"a:\nb: ~":           "f:1: a: it has no value; write \"\" for an empty one\nf:2: b: it has no value; write \"\" for an empty one",
		"a: [4]":             "f:1: a: it is neither a word nor a number; put it into quotes if it is meant as it stands",
		"\na: |\n  4":        "f:2: a: it is neither", "a: !!str 4": "f:1: a: it is neither",
		"a: &x 4\nb: *x": "f:1: a: it is neither a word nor a number; put it into quotes if it is meant as it stands\nf:2: b: it is neither",
		"x:\n  a: 4":     "f:1: unknown key \"x\"; settings are a flat list",
		"- a: 4":         "f:1: settings are a flat list", "four": "f:1: settings are a flat list", "&x {a: 4}": "f:1: settings are a flat list",
		"a: 1\n---\nb: 2": "a second document begins", "<<: {a: 4}": "f:1: unknown key \"<<\"",
		"? [a]\n: 4": "f:1: its name is no word", "&x a: 4": "f:1: its name is no word",
		"a: 1\n b: 2": "f:2: mapping values are not allowed in this context; settings are a flat list",
		"a: '4":       "settings are a flat list", "a: \x00": "settings are a flat list",
		"a: @x": "settings are a flat list", strings.Repeat("#", BytesMax+1): "f: it has more than 1048576 bytes, and is no file of settings",
	} {
		_, err := Parse("f", []byte(text), unknown)
		if one := (*Mistake)(nil); !errors.As(err, &one) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50q: %T %v", text, err, err)
		}
	}
}

func TestAFileFullOfMistakesTellsTheFirst(t *testing.T) {
	_, err := Parse("f", []byte(strings.Repeat("x: 1\n", 10_000)), unknown)
	if n := strings.Count(err.Error(), "\n") + 1; n != mistakesTold {
		t.Errorf("%d are told", n)
	}
}

// Whatever a file has, what is read of it are settings with their lines, and each mistake says where and what.
func FuzzAFileOfSettings(f *testing.F) {
	for _, text := range []string{
		"---\n# of the broker\na: 6  # six\nb: '33554432'\n\nc: \"with # and: within\"\n", "a: 1\na: 2", "a:", "a: '4", "a: [4]", "a: &a 4\nb: *a", "x:\n  a: 4", "a: 1\n---\nb: 2",
		"&a [*a, *a]", "<<: {a: 4}",
		"? [x]\n: 4", "a: |\n  two\n  lines", "\ufeffa: 4\r\n", strings.Repeat("[", 2000), "\x00", "!!binary x: y",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := Parse("f", []byte(text), unknown)
		for name, v := range values {
			if unknown(name) != "" || v.Line < 1 || v.Line > len(text)+1 {
				t.Errorf("%q is read from line %d", name, v.Line)
			}
		}
		one := (*Mistake)(nil)
		if err != nil && (!errors.As(err, &one) || one.Path != "f" || one.Problem == "" || one.Line < 0 || one.Line > len(text)+1) {
			t.Errorf("%T: %v", err, err)
		}
	})
}
