// Package pages holds what the user's pages name to the code: settings and metrics that are there, defaults that are in force, and
// links that lead somewhere.
//
// The package has only tests.
package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages are the user's pages by name; the dated decisions say what was, and are left alone.
func pages(t testing.TB) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range append(names, "../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = string(text)
	}
	if len(out) < 6 {
		t.Fatalf("only %d pages were found", len(out))
	}
	return out
}

// sources is the text of every file of the tree that is code and no test.
func sources(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"actors", "client", "cmd", "controlplane", "demos", "internal", "sessionactor", "shardactor", "storage", "transport", "wire", "test/conformance"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			if ext := filepath.Ext(path); ext != ".go" && ext != ".sh" && ext != ".py" {
				return nil
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

var (
	setting = regexp.MustCompile(`\bFELIX_[A-Z0-9_]*[A-Z0-9]\b`)
	metric  = regexp.MustCompile(`\bfelixd?_[a-z0-9_]*[a-z0-9]\b`)
	flag    = regexp.MustCompile("`--([a-z0-9-]+)[ `=]")
)

// foreign are variables of programs that are not ours, which the pages talk about.
var foreign = []string{"FELIX_INITIAL_MTU"}

func TestEverySettingThatAPageNamesIsRead(t *testing.T) {
	code := sources(t)
	for name, text := range pages(t) {
		for _, v := range slices.Compact(slices.Sorted(slices.Values(setting.FindAllString(text, -1)))) {
			if !strings.Contains(code, `"`+v+`"`) && !slices.Contains(foreign, v) {
				t.Errorf("%s names %s, and nothing reads it", name, v)
			}
		}
	}
}

func TestEveryMetricThatAPageNamesIsThere(t *testing.T) {
	code := sources(t)
	for name, text := range pages(t) {
		for _, m := range slices.Compact(slices.Sorted(slices.Values(metric.FindAllString(text, -1)))) {
			if !known(code, m) {
				t.Errorf("%s names %s, and nothing counts it", name, m)
			}
		}
	}
}

// known reports whether a metric is declared: by its whole name, or by its end where a family shares its beginning. A page may name
// the beginning alone, or a part of a histogram.
func known(code, name string) bool {
	for _, part := range []string{"_sum", "_count", "_bucket"} {
		name = strings.TrimSuffix(name, part)
	}
	if strings.Contains(code, `"`+name) {
		return true
	}
	rest, ok := strings.CutPrefix(name, "felixd_actor_")
	return ok && strings.Contains(code, `"`+rest+`"`)
}

func TestEveryFlagThatAPageNamesIsThere(t *testing.T) {
	code := sources(t)
	for name, text := range pages(t) {
		for _, m := range flag.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(code, `"`+m[1]+`"`) && m[1] != "help" {
				t.Errorf("%s names --%s, and no program has it", name, m[1])
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// anchor is how a heading is linked to.
func anchor(title string) string {
	title = strings.ToLower(strings.ReplaceAll(title, "`", ""))
	title = strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, title)
	return "#" + strings.ReplaceAll(title, " ", "-")
}

// mission 400 (the link check)
func TestEveryLinkBetweenPagesLeadsSomewhere(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		folder := "../../docs"
		if name == "README.md" {
			folder = "../.."
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			file, place := m[1], m[2]
			if strings.Contains(file, "://") {
				continue
			}
			target := text
			if file != "" {
				if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
					t.Errorf("%s links to %s, which is not there", name, file)
					continue
				}
				target = all[filepath.Base(file)]
			}
			if place != "" && !slices.ContainsFunc(heading.FindAllStringSubmatch(target, -1), func(h []string) bool { return anchor(h[1]) == place }) {
				t.Errorf("%s links to %s%s, and there is no such heading", name, file, place)
			}
		}
	}
}

func TestWhatIsNotThereIsFound(t *testing.T) {
	code := `"FELIX_X" "felix_a_total" "felix_b_seconds" "executors_busy"`
	for name, want := range map[string]bool{
		"felix_a_total": true, "felix_b_seconds_sum": true, "felixd_actor_executors_busy": true, "felix_c_total": false, "felixd_actor_none": false,
	} {
		if known(code, name) != want {
			t.Errorf("%s is known: %v, want %v", name, !want, want)
		}
	}
	if got := anchor("A subscriber that is too slow"); got != "#a-subscriber-that-is-too-slow" {
		t.Error(got)
	}
	if got := anchor("`felixctl` & more, 2 of them"); got != "#felixctl--more-2-of-them" {
		t.Error(got)
	}
}
