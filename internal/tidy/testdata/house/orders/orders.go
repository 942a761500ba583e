// Package orders walks through maps.
package orders

import (
	order "maps"
	"slices"
	"sort"
	"sync"
)

type set map[string]bool

func walks(m map[string]int, s set, sm *sync.Map) (out []string) {
	for k := range m { // want ranges: ranges over map[string]int
		out = append(out, k)
	}
	for range s { // want ranges: ranges over set
		out = nil
	}
	for k := range order.Keys(m) { // want ranges: maps.Keys without sorting
		out = append(out, k)
	}
	_ = slices.Collect(order.Values(m)) // want ranges: maps.Values without sorting
	sm.Range(func(k, v any) bool {      // want ranges: sync.Map
		return true
	})
	return out
}

func generic[M ~map[K]V, K comparable, V any](m M) {
	for range m { // want ranges: ranges over M
	}
}

func collectsMore(m map[string]int) (out []string) {
	n := 0
	for k := range m { // want ranges: ranges over map
		n++
		out = append(out, k)
	}
	sort.Strings(out)
	return out[:n]
}

func sortsAnother(m map[string]int) (out, other []string) {
	for k := range m { // want ranges: ranges over map
		out = append(out, k)
	}
	sort.Strings(other)
	return out, other
}

func fine(m map[string]int, list []int) (out []string) {
	for range list {
	}
	for _, k := range slices.Sorted(order.Keys(m)) {
		_ = m[k]
	}
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b string) int { return len(a) - len(b) })
	return slices.SortedFunc(order.Keys(m), func(a, b string) int { return len(a) - len(b) })
}

// Walk is for others.
const Walk = 1

// Shared is changed by another package.
var Shared int

func constrained[T any, M interface{ ~map[int]T }](m M, l []T) {
	for range m { // want ranges: ranges over M
	}
	for range l {
	}
}

type keyed interface{ ~map[int]bool }

func named[M keyed](m M) {
	for range m { // want ranges: ranges over M
	}
}

func collectsValues(m map[string]struct{ n int }) (out []int) {
	for _, v := range m { // want ranges: ranges over map
		out = append(out, v.n)
	}
	sort.Ints(out)
	switch {
	default:
		for range m { // want ranges: ranges over map
			out[0] = append(out, 1)[0]
		}
		sort.Ints(out)
	}
	return out
}
