package protocoldoc

import (
	"testing"

	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/wire"
)

func TestEachMessageOfThePageDecodesAndEncodesToTheSameText(t *testing.T) {
	for _, b := range protocol(t).of(t, "json") {
		for i, line := range b.lines {
			m, err := wire.DecodeJSON([]byte(line))
			if err != nil {
				t.Errorf("line %d: %v", b.line+1+i, err)
				continue
			}
			if got := string(wire.AppendJSON(nil, m)); got != line {
				t.Errorf("line %d: encodes to\n%s, want\n%s", b.line+1+i, got, line)
			}
		}
	}
}

// A message that is made up here would prove less than one that another program made.
func TestAllButTheAnswerOfThisVersionAreVectors(t *testing.T) {
	known := map[string]bool{greeting(t): true}
	for _, text := range vectorTexts(t) {
		known[text] = true
	}
	for _, b := range protocol(t).of(t, "json") {
		for i, line := range b.lines {
			if !known[line] {
				t.Errorf("line %d: is no vector: %s", b.line+1+i, line)
			}
		}
	}
}

// greeting is what this broker answers to the auth that the page shows.
func greeting(t testing.TB) string {
	t.Helper()
	for _, b := range protocol(t).of(t, "json") {
		for _, line := range b.lines {
			m, err := wire.DecodeJSON([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			if auth, ok := m.(*wire.Auth); ok {
				answer := sessionactor.EphemeralOffer().AuthOK(*auth)
				answer.PublishWindow = wire.Some(uint32(wire.PublishWindow))
				return string(wire.AppendJSON(nil, answer))
			}
		}
	}
	t.Fatal("the page shows no auth")
	return ""
}

func TestThePageShowsTheAnswerOfThisVersionToAuth(t *testing.T) {
	want := greeting(t)
	for _, b := range protocol(t).of(t, "json") {
		for _, line := range b.lines {
			if line == want {
				return
			}
		}
	}
	t.Errorf("the page does not show %s", want)
}
