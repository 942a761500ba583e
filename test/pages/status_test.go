package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	statusRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
	testName  = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(t \*testing\.T\)`)
)

// tests are the names of all tests of the tree.
func tests(t testing.TB) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// mission 341
func TestEveryRowOfTheStatusIsProvedByATestThatIsThere(t *testing.T) {
	there := tests(t)
	rows := statusRow.FindAllStringSubmatch(pages(t)["status.md"], -1)
	if len(rows) < 10 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows[2:] { // behind the head and the line below it
		if row[2] != "works" && row[2] != "later" {
			t.Errorf("%s: the state is %q", row[1], row[2])
		}
		named := testName.FindAllStringSubmatch(row[3], -1)
		if len(named) == 0 {
			t.Errorf("%s: no test is named", row[1])
		}
		for _, m := range named {
			if !there[m[1]] {
				t.Errorf("%s: there is no %s", row[1], m[1])
			}
		}
	}
}

// mission 332
func TestTheTuningGuideHasWorkedExamplesWithFlagsThatAreThere(t *testing.T) {
	_, examples, ok := strings.Cut(pages(t)["performance-tuning.md"], "\n## Worked examples\n")
	examples, _, _ = strings.Cut(examples, "\n## ")
	if n := strings.Count(examples, "\n**"); !ok || n < 4 {
		t.Errorf("%d worked examples", n)
	}
	code := sources(t)
	for _, m := range regexp.MustCompile(`--([a-z0-9-]+) `).FindAllStringSubmatch(examples, -1) {
		if !strings.Contains(code, `"`+m[1]+`"`) {
			t.Errorf("an example has --%s, which is no flag", m[1])
		}
	}
}

// Beside rates the page has the latency at a rate that is below them.
//
// mission 345
func TestTheBenchmarksHaveLatenciesAtFiveThousandASecond(t *testing.T) {
	page := pages(t)["benchmarks.md"]
	if !regexp.MustCompile(`(?m)^\| case \| records/s .*p99 us \| p99\.9 us \|`).MatchString(page) {
		t.Error("no table has p99 and p99.9 beside rates")
	}
	row := regexp.MustCompile(`(?m)^\| felixd \| (4.99\d|5.00\d) \[[^|]*\|[^|]*(\| \d[^|]*){4}\|`) // records/s, MB/s, p50, p90, p99, p99.9
	if !row.MatchString(page) {
		t.Error("felixd has no row at 5,000 records a second with p50, p90, p99 and p99.9")
	}
}
