package tidy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Finding is one broken rule at one place.
type Finding struct {
	File string // relative to the tree's root, with forward slashes
	Line int    // from 1; 0 means the whole file
	What string // what is there
	Why  string // what goes wrong with it
	Do   string // what to do
}

// String is one line: place, what, why, what to do.
func (f Finding) String() string {
	place := f.File
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return fmt.Sprintf("%s: %s. Why it matters: %s. What to do: %s", place, f.What, f.Why, f.Do)
}

// Sorted orders findings by place and drops repetitions.
func Sorted(findings []Finding) []Finding {
	out := slices.Clone(findings)
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.What, b.What))
	})
	return slices.Compact(out)
}
