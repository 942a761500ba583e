package store

import (
	"slices"

	"github.com/felixd/felixd/controlplane/model"
)

// table keeps the records of one kind sorted by key. Insertion and removal shift a slice: at 100,000 records that is
// a move of a few megabytes, some hundred microseconds, for a write that people make by hand or a deploy by the
// hundred. In return lists, pages and cascades are plain subslices in key order.
type table[R model.Record] struct {
	rows []R // sorted by Key, no two equal
}

// find returns where the record of that key is, or where it would go.
func (t *table[R]) find(k model.ResourceName) (int, bool) {
	return slices.BinarySearchFunc(t.rows, k, func(r R, k model.ResourceName) int { return r.Key().Compare(k) })
}

// get returns the record of that key.
func (t *table[R]) get(k model.ResourceName) (R, bool) {
	if i, ok := t.find(k); ok {
		return t.rows[i], true
	}
	var none R
	return none, false
}

// put inserts or replaces the record of r's key.
func (t *table[R]) put(r R) {
	i, ok := t.find(r.Key())
	if ok {
		t.rows[i] = r
		return
	}
	t.rows = slices.Insert(t.rows, i, r)
}

// inside returns the run of rows within scope: a tenant, or a tenant and namespace. The result shares memory with the
// table.
func (t *table[R]) inside(scope model.ResourceName) []R {
	return t.rows[t.edge(scope, false):t.edge(scope, true)]
}

// edge returns the index of the first row inside scope or, with past, of the first row after scope.
func (t *table[R]) edge(scope model.ResourceName, past bool) int {
	i, _ := slices.BinarySearchFunc(t.rows, scope, func(r R, scope model.ResourceName) int {
		k := r.Key()
		k.Name = ""
		if scope.Namespace == "" {
			k.Namespace = ""
		}
		if c := k.Compare(scope); c != 0 || !past {
			return c
		}
		return -1
	})
	return i
}

// take removes all rows inside scope and returns them in key order.
func (t *table[R]) take(scope model.ResourceName) []R {
	from, to := t.edge(scope, false), t.edge(scope, true)
	taken := slices.Clone(t.rows[from:to])
	t.rows = slices.Delete(t.rows, from, to)
	return taken
}

// remove removes the row of that key.
func (t *table[R]) remove(k model.ResourceName) (R, bool) {
	i, ok := t.find(k)
	if !ok {
		var none R
		return none, false
	}
	r := t.rows[i]
	t.rows = slices.Delete(t.rows, i, i+1)
	return r, true
}

// page copies up to limit rows of scope with a key above after.
func (t *table[R]) page(scope, after model.ResourceName, limit int) []R {
	rows := t.inside(scope)
	i, found := slices.BinarySearchFunc(rows, after, func(r R, k model.ResourceName) int { return r.Key().Compare(k) })
	if found {
		i++
	}
	rows = rows[i:]
	return slices.Clone(rows[:min(limit, len(rows))])
}
