package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

func TestNamedFindsPathsAndNamesThatAreGone(t *testing.T) {
	got, err := Named(loadHouse(t), "DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	says(t, got,
		"DESIGN.md:6: names attic/, which is not there",
		"DESIGN.md:6: names rooms/door.go, which is not there",
		"DESIGN.md:7: names Cellar in rooms/rooms.go, which does not have it",
		"DESIGN.md:7: names cellar.md, which is not there",
		"DESIGN.md:7: names line 9000 of rooms/rooms.go, which has not so many",
		"DESIGN.md:8: names rooms.Door, which package rooms does not declare",
		"DESIGN.md:8: names rooms.Room.Knock, which package rooms does not declare")
}

func TestDependenciesWantsASentenceForEachModule(t *testing.T) {
	tree := loadHouse(t)
	got, err := Dependencies(tree, "DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	says(t, got)
	if got, err = Dependencies(tree, "README.md"); err != nil {
		t.Fatal(err)
	}
	says(t, got, "README.md: has no sentence about example.com/third")
	if got := tree.directModules(); !slices.Equal(got, []string{"example.com/third"}) {
		t.Errorf("direct modules are %v", got)
	}
}

func TestASentenceNamesTheModuleAndSaysSomething(t *testing.T) {
	for block, want := range map[string]bool{
		"| `github.com/quic-go/quic-go` | QUIC for clients and peers, kept by its own team |": true,
		"`quic-go/quic-go` carries the frames of clients and peers.":                          true,
		"`github.com/quic-go/quic-go` 1 2 3 4 5 6 7":                                          false,
		"Frames of clients and peers are carried by a library that others keep.":              false,
		"": false,
	} {
		if got := isSentenceAbout(block, "github.com/quic-go/quic-go"); got != want {
			t.Errorf("%q is a sentence: %v, want %v", block, got, want)
		}
	}
}

func TestTestCommandIsTheScriptsOwn(t *testing.T) {
	tree := loadHouse(t)
	got, err := LandingCommand(tree, "README.md", "scripts/good.txt")
	if err != nil {
		t.Fatal(err)
	}
	says(t, got)
	if got, err = LandingCommand(tree, "README.md", "scripts/bad.txt"); err != nil {
		t.Fatal(err)
	}
	says(t, got, `scripts/bad.txt: does not run "go test ./...", which README.md names`)
	if got, err = LandingCommand(tree, "DESIGN.md", "scripts/good.txt"); err != nil {
		t.Fatal(err)
	}
	says(t, got, "DESIGN.md: shows no go test command in its code blocks")
	if _, err := LandingCommand(tree, "README.md", "scripts/none.txt"); err == nil {
		t.Error("a script that is not there was taken")
	}
}

func TestPackagesWithGoroutinesAreNotLeftToThemselves(t *testing.T) {
	tree := loadHouse(t)
	got, err := Unraced(tree, "scripts/unraced.txt", []string{"high", "low/..."})
	if err != nil {
		t.Fatal(err)
	}
	says(t, got, "pure/pure.go:42: starts a goroutine, and scripts/unraced.txt leaves example.com/house/pure to itself",
		"scripts/unraced.txt:2: example.com/house is no package of this module", // its files are all in folders
		`scripts/unraced.txt:7: "example.com/house/mid drives" is neither a package nor one of high, low/... that drives programs`,
		"scripts/unraced.txt:8: example.com/house/none is no package of this module",
		"scripts/unraced.txt:9: example.com/third is no package of this module")
	if _, err := Unraced(tree, "scripts/none.txt", nil); err == nil {
		t.Error("a list that is not there was taken")
	}
}

func TestWhatRunsBesideSomethingIsSeenHoweverItIsStarted(t *testing.T) {
	for text, want := range map[string]bool{
		"go f()": true, "g.Go(func() {})": true, "t.Parallel()": true, "b.RunParallel(f)": true,
		"f()": false, "x.Go(job{})": false, "f(g.Go)": false, "func() {}()": false,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\nfunc _() { "+text+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		got := false
		ast.Inspect(f, func(n ast.Node) bool { got = got || begins(n); return true })
		if got != want {
			t.Errorf("%q begins something: %v, want %v", text, got, want)
		}
	}
}

func TestMissingPageIsAFinding(t *testing.T) {
	tree := loadHouse(t)
	for name, rule := range map[string]func() ([]Finding, error){
		"Named":          func() ([]Finding, error) { return Named(tree, "NONE.md") },
		"Dependencies":   func() ([]Finding, error) { return Dependencies(tree, "NONE.md") },
		"LandingCommand": func() ([]Finding, error) { return LandingCommand(tree, "NONE.md", "scripts/good.txt") },
	} {
		t.Run(name, func(t *testing.T) {
			got, err := rule()
			if err != nil {
				t.Fatal(err)
			}
			says(t, got, "NONE.md: the page is not there")
		})
	}
}

func TestParagraphsItemsAndRowsAreBlocksOfTheirOwn(t *testing.T) {
	p := parsePage("a\nb `x`\n\n- c\n  d\n- e\n| f |\n| g |\n```sh\n`h`\n```\n1. i\n")
	if want := []string{"a b `x`", "- c d", "- e", "| f |", "| g |", "1. i"}; !slices.Equal(p.blocks, want) {
		t.Errorf("blocks are %q, want %q", p.blocks, want)
	}
	if len(p.spans) != 1 || p.spans[0] != (codeSpan{text: "x", line: 2}) || !slices.Equal(p.code, []string{"`h`"}) {
		t.Errorf("spans are %v and code is %q", p.spans, p.code)
	}
}
