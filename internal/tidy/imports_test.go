package tidy

import "testing"

// full is the import table of the house; low and stray break it.
func full() Layout {
	return Layout{Where: "the table", TestThird: []string{"example.com/third"}, Places: []Place{
		{Package: "actors"},
		{Package: "low"},
		{Package: "mid", Third: []string{"example.com/third/deep"}},
		{Package: "high", May: []string{"mid", "orders/...", "sums"}},
		{Package: "orders"}, {Package: "pure"}, {Package: "sleepy/..."}, {Package: "sums"}, {Package: "tidycore"},
		{Package: "rooms/...", May: []string{"actors"}}, {Package: "annex", May: []string{"actors", "rooms"}}, {Package: "disk", May: []string{"disk/door"}}, {Package: "disk/door"},
	}}
}

func TestImportsFindsWhatTheTableDoesNotAllow(t *testing.T) {
	layout := full()
	layout.Places = append(layout.Places, Place{Package: "stray"})
	exactly(t, "imports", Imports(loadHouse(t), layout))
}

func TestPackageWithoutAPlaceIsTold(t *testing.T) {
	layout := full()
	layout.Places[1] = Place{Package: "low", May: []string{"mid"}, Third: []string{"example.com/third"}}
	says(t, Imports(loadHouse(t), layout), "stray: package stray is not in the import table. Why it matters: arrows between packages run one way, "+
		"so that a part can be read, tested and replaced without what stands above it. What to do: add it to the table in the table")
}

func TestAloneFindsTestsThatNeedMoreThanWhatTheyTest(t *testing.T) {
	says(t, Alone(loadHouse(t), []string{"high", "annex", "disk"}, nil), "high: tests of high need rooms. Why it matters: a part that is only tested together")
	says(t, Alone(loadHouse(t), []string{"high"}, []string{"rooms"}))
}

func TestTestsNeedLeaveForForeignModulesOnly(t *testing.T) {
	layout := full()
	layout.TestThird = nil
	layout.Places = append(layout.Places, Place{Package: "stray"})
	layout.Places[1] = Place{Package: "low", May: []string{"mid"}, Third: []string{"example.com/third"}}
	says(t, Imports(loadHouse(t), layout), "tests of high may not import example.com/third")
}

func TestExactPlaceComesBeforeTheLongestPattern(t *testing.T) {
	l := Layout{Places: []Place{{Package: "a/..."}, {Package: "a/b/..."}, {Package: "a/b/c"}}}
	for path, want := range map[string]string{"a": "a/...", "a/x": "a/...", "a/b": "a/b/...", "a/b/d/e": "a/b/...", "a/b/c": "a/b/c"} {
		if got, ok := l.place(path); !ok || got.Package != want {
			t.Errorf("place of %s is %q, want %q", path, got.Package, want)
		}
	}
	if got, ok := l.place("ab"); ok {
		t.Errorf("ab has place %q, want none", got.Package)
	}
}

func TestReachShowsTheWay(t *testing.T) {
	exactly(t, "reach", Reach(loadHouse(t), []Never{{From: []string{"high", "orders"}, To: []string{"example.com/third"}, Why: "it is far"}}))
}

func TestSeparateFindsWhoSeesBothSides(t *testing.T) {
	tree := loadHouse(t)
	says(t, Separate(tree, []Apart{{A: "mid", B: "sums", Except: []string{"rooms"}, Why: "they quarrel"}}), "package high sees both mid and sums. Why it matters: they quarrel")
	says(t, Separate(tree, []Apart{{A: "mid", B: "sums", Except: []string{"high"}, Why: "they quarrel"}}))
	says(t, Separate(tree, []Apart{{A: "low", B: "mid", Except: []string{"high"}, Why: "they quarrel"}}), "package low sees both low and mid")
}
