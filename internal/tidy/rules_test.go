package tidy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPurityFindsClocksChanceGoroutinesAndState(t *testing.T) {
	exactly(t, "purity", Purity(loadHouse(t), []string{"pure", "tidycore"}))
}

func TestVariablesFindsStateButLetsPoolsBe(t *testing.T) {
	exactly(t, "variables", Variables(loadHouse(t), []string{"pure", "tidycore", "sums", "rooms", "high"}))
}

func TestDoorsFindsWaysToTheDiskUnderAnyName(t *testing.T) {
	exactly(t, "doors", Doors(loadHouse(t), []string{"disk/..."}, "disk/door"))
}

func TestMapRangesFindsEveryWayThroughAMap(t *testing.T) {
	exactly(t, "ranges", MapRanges(loadHouse(t), []string{"orders/...", "tidycore"}))
}

func TestSumTypesFindsForgottenTypesAndOpenInterfaces(t *testing.T) {
	exactly(t, "sums", SumTypes(loadHouse(t), []string{"sums.Side"}))
}

func TestSumTypesRefusesAnExceptionThatFitsNothing(t *testing.T) {
	var found bool
	for _, f := range SumTypes(loadHouse(t), []string{"sums.Side", "sums.Nothing"}) {
		found = found || strings.Contains(f.What, "no marked interface sums.Nothing")
	}
	if !found {
		t.Error("an exception for an interface that is not there was taken")
	}
}

func TestActorsComparesTablesWithWhatIsAccepted(t *testing.T) {
	exactly(t, "actors", Actors(loadHouse(t), "actors"))
}

func TestActorsWithoutTheRuntimeFails(t *testing.T) {
	says(t, Actors(loadHouse(t), "motors"), "there is no package motors")
}

func TestSleepsFindsSleepsUnderAnyName(t *testing.T) {
	got, err := Sleeps(loadHouse(t))
	if err != nil {
		t.Fatal(err)
	}
	exactly(t, "sleeps", got)
}

func TestLongFilesCountsLinesOfFilesWithoutTests(t *testing.T) {
	tree := &Tree{Sources: []Source{{File: "a.go", Lines: 601}, {File: "b.go", Lines: 600}, {File: "a_test.go", Lines: 900, Test: true}}}
	says(t, LongFiles(tree, 600), "a.go:601: has 601 lines, more than 600")
}

func TestSourcesLeaveOutTestdataAndHiddenFolders(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{"a.go", "b/c_test.go", "b/testdata/d.go", ".hidden/e.go", "_old/f.go", "notes.txt"} {
		path := filepath.Join(root, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("package x\n\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := walkSources(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) != 2 || sources[0].File != "a.go" || sources[0].Lines != 2 || sources[0].Test || sources[1].File != "b/c_test.go" || !sources[1].Test {
		t.Errorf("sources are %+v, want a.go and b/c_test.go", sources)
	}
}

func TestBrokenPackageIsFoundAndTheRestIsLoaded(t *testing.T) {
	tree, err := Load("testdata/broken")
	if err != nil {
		t.Fatal(err)
	}
	says(t, Broken(tree), "bad/bad.go:4: does not compile")
	if got := Broken(loadHouse(t)); got != nil {
		t.Errorf("the house is broken: %v", got)
	}
}

func TestLoadWithoutAModuleFails(t *testing.T) {
	if tree, err := Load(t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "load module: ") {
		t.Errorf("loaded %v, %v; want an error", tree, err)
	}
}
