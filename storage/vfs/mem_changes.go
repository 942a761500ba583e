package vfs

// edge sets what a name of a directory stands for; 0 takes the name away.
type edge struct {
	dir  ino
	base string
	at   ino
}

// change is one change of names: one edge, or the two of a rename, which come and go together. The edges are never changed in place.
type change struct {
	edges  []edge
	synced uint8 // bit per edge: its directory was synced since
	across bool  // a rename between two directories
	moved  bool  // of a directory
}

// place is a name in a directory.
type place struct {
	dir  ino
	base string
}

// touched is what changes were met on a walk over the list: those that a change depends on, or that depend on it.
//
// A change depends on an earlier one if both are about one name of one directory; if both move directories, so that no two end up in each
// other; and if it moves something into a directory that the earlier one put in its place, so that nothing moves to where it cannot be found.
// All others reach the disk in any order.
type touched struct {
	places map[place]bool
	dirs   map[ino]bool // directories that were put somewhere, or into which something was moved
	moved  bool
}

func newTouched() touched { return touched{places: map[place]bool{}, dirs: map[ino]bool{}} }

// laterNeeds reports whether a change depends on one that was added, all of which are earlier.
func (t *touched) laterNeeds(c change) bool {
	if t.moved && c.moved {
		return true
	}
	for _, e := range c.edges {
		if t.places[place{e.dir, e.base}] || c.across && e.at != 0 && t.dirs[e.dir] {
			return true
		}
	}
	return false
}

// neededBy reports whether one that was added, all of which are later, depends on a change.
func (t *touched) neededBy(c change) bool {
	if t.moved && c.moved {
		return true
	}
	for _, e := range c.edges {
		if t.places[place{e.dir, e.base}] || e.at != 0 && t.dirs[e.at] {
			return true
		}
	}
	return false
}

// addEarlier adds a change for laterNeeds.
func (t *touched) addEarlier(c change) {
	t.add(c)
	for _, e := range c.edges {
		if e.at != 0 {
			t.dirs[e.at] = true
		}
	}
}

// addLater adds a change for neededBy.
func (t *touched) addLater(c change) {
	t.add(c)
	for _, e := range c.edges {
		if c.across && e.at != 0 {
			t.dirs[e.dir] = true
		}
	}
}

func (t *touched) add(c change) {
	t.moved = t.moved || c.moved
	for _, e := range c.edges {
		t.places[place{e.dir, e.base}] = true
	}
}

// changed adds a change to the list.
func (d *disk) changed(c change) {
	for _, e := range c.edges {
		if e.at != 0 {
			d.refer(e.at, 1)
		}
	}
	d.changes = append(d.changes, c)
}

// syncDir makes durable all changes whose directories were all synced since, and those they depend on.
func (d *disk) syncDir(at ino) {
	durable := make([]bool, len(d.changes))
	needed := newTouched()
	for i := len(d.changes) - 1; i >= 0; i-- {
		c := &d.changes[i]
		for bit, e := range c.edges {
			if e.dir == at || d.nodes[e.dir] == nil { // what happened in a directory that is gone, durably, needs no sync
				c.synced |= 1 << bit
			}
		}
		if c.synced == 1<<len(c.edges)-1 || needed.neededBy(*c) {
			durable[i] = true
			needed.addLater(*c)
		}
	}
	rest := d.changes[:0:0]
	for i, c := range d.changes {
		if durable[i] {
			d.keep(c)
		} else {
			rest = append(rest, c)
		}
	}
	d.changes = rest
}

// keep applies a change to the durable names; it stops to be a change.
func (d *disk) keep(c change) {
	for _, e := range c.edges {
		if d.nodes[e.dir] == nil {
			if e.at != 0 {
				d.refer(e.at, -1)
			}
			continue
		}
		was := d.nodes[e.dir].kept[e.base]
		if e.at != 0 {
			d.own(e.dir).kept[e.base] = e.at // the reference of the change goes over to the name
		} else {
			delete(d.own(e.dir).kept, e.base)
		}
		if was != 0 {
			d.refer(was, -1)
		}
	}
}
