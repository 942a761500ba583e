package vfs

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Clone is the disk after the process was killed: all that was written is there, durable or not, as the system has it. A power cut may
// still take from the clone what was not synced.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk.by = &token{} // pages and nodes of before now belong to nobody: whoever writes first makes a copy
	c := NewMem()
	d := &c.disk
	d.nodes, d.refs, d.next = maps.Clone(m.disk.nodes), maps.Clone(m.disk.refs), m.disk.next
	d.capacity, d.used, d.changes = m.disk.capacity, m.disk.used, slices.Clone(m.disk.changes)
	for _, at := range slices.Sorted(maps.Keys(m.opens)) {
		if n := d.nodes[at]; n.links == 0 {
			d.used -= n.held
		}
		d.refer(at, -m.opens[at])
	}
	return c
}

// CrashHard is the disk after a power cut that took all that was not synced.
func (m *Mem) CrashHard() *Mem { return m.Crash(func(int) int { return 0 }) }

// Crash is a disk as a power cut could have left it. What was synced is there. Of each thing that was not, choose(n) decides, which
// answers from 0 up to and without n, 0 being the worst, n-1 the best:
//
//   - a page that was written is as it was synced, as it was in between, as it is, or a mixture of those by sectors of 512 bytes;
//   - a size is the synced one, one in between, the present one, or the end of a page between the least and the greatest of them;
//     pages and size know nothing of each other, so that a file may be short, or end in zeros;
//   - a change of names happened or not; those about one name in their order, a rename as a whole.
//
// Bytes that were never in the file do not appear in it. Equal choices make equal disks. What is on the new disk is durable.
func (m *Mem) Crash(choose func(n int) int) *Mem {
	pick := func(n int) int {
		k := choose(n)
		if k < 0 || k >= n {
			panic(fmt.Sprintf("vfs: Mem.Crash: choose(%d) answered %d", n, k))
		}
		return k
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk.by = &token{}
	c := NewMem()
	names := m.disk.crashNames(pick)
	c.disk.next, c.disk.capacity = m.disk.next, m.disk.capacity
	delete(c.disk.nodes, rootIno)
	delete(c.disk.refs, rootIno)
	c.disk.plant(&m.disk, names, rootIno, pick)
	return c
}

// How a crash chooses among several things at once: most disks that catch a fault are near one of the ends.
const (
	keepNone   = iota
	keepEach   // each for itself
	keepPrefix // the first few
	keepAll
	keepWays
)

// keeper answers, for count things in turn, whether each is kept.
func keeper(count int, pick func(int) int) func(i int) bool {
	if count == 0 {
		return nil
	}
	switch pick(keepWays) {
	case keepNone:
		return func(int) bool { return false }
	case keepEach:
		return func(int) bool { return pick(2) == 1 }
	case keepPrefix:
		end := pick(count + 1)
		return func(i int) bool { return i < end }
	}
	return func(int) bool { return true }
}

// crashNames chooses which changes of names happened, and returns what each directory holds then.
func (d *disk) crashNames(pick func(int) int) map[ino]map[string]ino {
	dirs := map[ino]map[string]ino{}
	of := func(at ino) map[string]ino {
		if dirs[at] == nil {
			dirs[at] = map[string]ino{}
			if n := d.nodes[at]; n != nil {
				maps.Copy(dirs[at], n.kept)
			}
		}
		return dirs[at]
	}
	for _, at := range slices.Sorted(maps.Keys(d.nodes)) {
		if d.nodes[at].dir {
			of(at)
		}
	}
	lost := newTouched()
	keep := keeper(len(d.changes), pick)
	for i, c := range d.changes {
		if !keep(i) || lost.laterNeeds(c) {
			lost.addEarlier(c)
			continue
		}
		for _, e := range c.edges {
			if e.at != 0 {
				of(e.dir)[e.base] = e.at
			} else {
				delete(of(e.dir), e.base)
			}
		}
	}
	return dirs
}

// plant puts one file or directory, and all below it, onto a new disk.
func (d *disk) plant(from *disk, names map[ino]map[string]ino, at ino, pick func(int) int) {
	if d.nodes[at] != nil {
		panic("vfs: Mem.Crash: something would have two names")
	}
	d.refs[at] = 2 // its name and its durable name
	if !from.nodes[at].dir {
		n := from.nodes[at].crash(d.by, pick)
		d.nodes[at] = n
		d.used += n.held
		return
	}
	n := newNode(d.by, true)
	n.links, n.names, n.kept = 1, names[at], maps.Clone(names[at])
	d.nodes[at] = n
	for _, base := range slices.Sorted(maps.Keys(n.names)) {
		d.plant(from, names, n.names[base], pick)
	}
}

// crash is what a power cut leaves of a file.
func (n *node) crash(by *token, pick func(int) int) *node {
	c := newNode(by, false)
	c.links = 1
	c.pages = maps.Clone(n.pages)
	dirty := slices.Sorted(maps.Keys(n.old))
	keep := keeper(len(dirty), pick)
	for k, i := range dirty {
		if pg := n.crashPage(by, i, keep(k), pick); pg != nil {
			c.pages[i] = pg
		} else {
			delete(c.pages, i)
		}
	}
	c.size = n.size // of what is there, the choice may cut, and what it adds is zeros
	for _, i := range dirty {
		c.size = max(c.size, (i+1)*pageSize)
	}
	size := n.crashSize(pick)
	if size < c.size {
		c.cut(size)
	}
	c.size = size
	c.sync()
	c.held = c.recount()
	return c
}

// crashPage is what is left of a page that was written since the last sync. Kept means the newest version or, rarely, a mixture.
func (n *node) crashPage(by *token, i int64, kept bool, pick func(int) int) *page {
	versions := append(append([]*page{n.old[i]}, n.mids[i]...), n.pages[i])
	newest := len(versions) - 1
	if !kept {
		// One in between, or the synced one.
		return versions[pick(newest)]
	}
	// 0 and 1: torn.
	if pick(8) > 1 {
		return versions[newest]
	}
	torn := &page{by: by}
	for at := 0; at < pageSize; at += sectorSize {
		if v := versions[pick(len(versions))]; v != nil {
			copy(torn.data[at:at+sectorSize], v.data[at:])
		}
	}
	return torn
}

// crashSize is a size that a file may have.
func (n *node) crashSize(pick func(int) int) int64 {
	sizes := append(append([]int64{n.keptSize}, n.sizes...), n.size)
	if len(sizes) == 2 && n.size == n.keptSize {
		return n.size
	}
	least, most := slices.Min(sizes), slices.Max(sizes)
	// The ends of pages between the two are one choice, before the last one.
	k := pick(len(sizes) + 1)
	switch {
	case k < len(sizes)-1:
		return sizes[k]
	case k == len(sizes):
		return n.size
	}
	first, last := pagesFor(least), most/pageSize
	if first > last {
		return least
	}
	return (first + int64(pick(int(last-first+1)))) * pageSize
}

// Hash tells two disks apart by what a reader would find: all names, kinds, sizes and bytes, durable or not.
func (m *Mem) Hash() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := sha256.New()
	var walk func(at ino, name string)
	walk = func(at ino, name string) {
		n := m.disk.nodes[at]
		if n.dir {
			fmt.Fprintf(h, "directory %q\n", name)
			for _, base := range slices.Sorted(maps.Keys(n.names)) {
				walk(n.names[base], join(name, base))
			}
			return
		}
		fmt.Fprintf(h, "file %q %d\n", name, n.size)
		for _, i := range slices.Sorted(maps.Keys(n.pages)) {
			if pg := n.pages[i]; pg.data != [pageSize]byte{} {
				fmt.Fprintf(h, "page %d\n", i)
				h.Write(pg.data[:])
			}
		}
	}
	walk(rootIno, ".")
	return binary.BigEndian.Uint64(h.Sum(nil))
}
