// Package clientguide holds docs/client-guide.md to code that compiles and runs: each Go block of the page stands, line for line,
// in one of the functions of this package, and each of those runs against a broker.
//
// The package has only tests.
package clientguide

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

// stage is a broker and how to reach it.
type stage struct {
	t       *testing.T
	ctx     context.Context
	broker  *local.Broker
	options client.Options
}

// begin starts a broker with what felixd dev begins with, and the stream clicks of four shards.
func begin(t *testing.T) *stage {
	t.Helper()
	b, err := local.Start(local.Options{
		Tenant:  "t1",
		Streams: []local.Stream{{Name: "orders"}, {Name: "ticks"}, {Name: "clicks", Shards: 4}}, Caches: []string{"users"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(func() {
		cancel()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return &stage{t: t, ctx: ctx, broker: b, options: b.Client()}
}

func (s *stage) client() *client.Client {
	s.t.Helper()
	c := testkit.Connect(s.t, s.options)
	s.t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	return c
}

// blocks are the Go blocks of a page, each with the number of its first line.
func blocks(text string) (out []struct {
	line  int
	lines []string
}) {
	inside := false
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "```go":
			inside = true
			out = append(out, struct {
				line  int
				lines []string
			}{line: number + 1})
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside:
			out[len(out)-1].lines = append(out[len(out)-1].lines, line)
		}
	}
	return out
}

// stands reports whether the lines stand together in the file, all of them equally far to the right.
func stands(file, lines []string) bool {
	for i := range file {
		if len(file)-i < len(lines) {
			return false
		}
		indent, ok := strings.CutSuffix(file[i], lines[0])
		if !ok || strings.Trim(indent, "\t") != "" {
			continue
		}
		same := true
		for k, line := range lines {
			same = same && (file[i+k] == indent+line || line == "" && file[i+k] == "")
		}
		if same {
			return true
		}
	}
	return false
}

func TestEachGoBlockOfTheGuideStandsInCodeThatRuns(t *testing.T) {
	text, err := os.ReadFile("../../docs/client-guide.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var files [][]string
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, strings.Split(string(source), "\n"))
	}
	found := blocks(string(text))
	if len(found) < 10 {
		t.Errorf("the guide has %d Go blocks, want its 10 at least", len(found))
	}
	for _, b := range found {
		if !slices.ContainsFunc(files, func(f []string) bool { return stands(f, b.lines) }) {
			t.Errorf("docs/client-guide.md:%d: this block stands in no function of test/clientguide:\n%s", b.line, strings.Join(b.lines, "\n"))
		}
	}
}

func TestABlockThatIsChangedIsFound(t *testing.T) {
	file := []string{"func f() {", "\tif x {", "\t\treturn", "", "\t}", "}"}
	for block, want := range map[string]bool{
		"if x {\n\treturn\n\n}": true,
		"return":                true,
		"if x {\nreturn\n\n}":   false,
		"if y {\n\treturn\n\n}": false,
		"if x {\n\treturn\n}":   false,
		"}\n}":                  false,
	} {
		if got := stands(file, strings.Split(block, "\n")); got != want {
			t.Errorf("%q stands in the file: %v, want %v", block, got, want)
		}
	}
}
