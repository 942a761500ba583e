package vfs

import (
	"maps"
	"slices"
)

// Units of the disk.
const (
	pageSize   = 4096 // what is written back as one
	sectorSize = 512  // what a power cut leaves whole
	// maxFile bounds a file of a Mem, in bytes; 1 TiB is far above every segment.
	maxFile = int64(1) << 40
	// maxMids bounds how many versions of a page between the synced and the newest one a crash may choose from; older ones are forgotten.
	maxMids = 2
	// maxSizes bounds the same of sizes.
	maxSizes = 8
)

// ino numbers files and directories; numbers are never used again. 0 is none.
type ino uint64

// token says which disk may change a page or a node in place. It must have a size: addresses of things without one may be equal.
type token struct{ _ byte }

// page is 4096 bytes of a file, zero past the file's end. Nil stands for zeros. It is changed only through the disk whose token it has.
type page struct {
	by   *token
	data [pageSize]byte
}

// node is a file or a directory. It is changed only through the disk whose token it has (disk.own).
type node struct {
	by    *token
	dir   bool
	links int // names that it has now: 0 or 1

	// Of a directory: the names now, and those that are durable.
	names, kept map[string]ino

	// Of a file.
	size     int64
	pages    map[int64]*page
	reserved int64 // pages below this one are preallocated
	held     int64 // pages that are written or preallocated

	// What a crash may bring back. A page that is not in old is durable as it is.
	keptSize int64
	sizes    []int64           // between keptSize and size, oldest first
	old      map[int64]*page   // as of the last sync; nil for one that was not there
	mids     map[int64][]*page // between the last sync and now, oldest first
}

func newNode(by *token, dir bool) *node {
	if dir {
		return &node{by: by, dir: true, names: map[string]ino{}, kept: map[string]ino{}}
	}
	return &node{by: by, pages: map[int64]*page{}, old: map[int64]*page{}, mids: map[int64][]*page{}}
}

// copyFor copies what a node says, not the pages. The lists in mids are never changed in place.
func (n *node) copyFor(by *token) *node {
	c := *n
	c.by = by
	c.names, c.kept = maps.Clone(n.names), maps.Clone(n.kept)
	c.pages, c.old, c.mids = maps.Clone(n.pages), maps.Clone(n.old), maps.Clone(n.mids)
	c.sizes = slices.Clone(n.sizes)
	return &c
}

// read copies bytes from off and says how many there are.
func (n *node) read(p []byte, off int64) int {
	if off >= n.size {
		return 0
	}
	p = p[:min(int64(len(p)), n.size-off)]
	for done := 0; done < len(p); {
		at := off + int64(done)
		in := at % pageSize
		to := p[done:min(len(p), done+int(pageSize-in))]
		if pg := n.pages[at/pageSize]; pg != nil {
			copy(to, pg.data[in:])
		} else {
			clear(to)
		}
		done += len(to)
	}
	return len(p)
}

// change returns page i to be changed in place. The version before it stays for a crash to choose: the synced one always, and a later
// one if mid says that bytes of it are about to go.
func (n *node) change(i int64, mid bool) *page {
	pg := n.pages[i]
	_, dirty := n.old[i]
	if dirty && pg != nil && pg.by == n.by && !mid {
		return pg
	}
	next := &page{by: n.by}
	if pg != nil {
		next.data = pg.data
	}
	n.supersede(i, mid)
	n.pages[i] = next
	return next
}

// supersede remembers page i as it is.
func (n *node) supersede(i int64, mid bool) {
	pg := n.pages[i]
	if _, dirty := n.old[i]; !dirty {
		n.old[i] = pg
	} else if mid && pg != nil {
		list := append(slices.Clone(n.mids[i]), pg)
		n.mids[i] = list[max(0, len(list)-maxMids):]
	}
}

// resize sets the size.
func (n *node) resize(size int64) {
	if size == n.size {
		return
	}
	if n.size != n.keptSize || len(n.sizes) > 0 {
		n.sizes = append(n.sizes, n.size)
		if len(n.sizes) > maxSizes {
			n.sizes = slices.Delete(n.sizes, 0, 1)
		}
	}
	n.size = size
}

// sync makes bytes and size durable.
func (n *node) sync() {
	n.keptSize = n.size
	n.sizes = nil
	clear(n.old)
	clear(n.mids)
}

// cut takes away all that is past size, which is below the present one.
func (n *node) cut(size int64) {
	for _, i := range slices.Sorted(maps.Keys(n.pages)) {
		if i*pageSize >= size {
			n.supersede(i, true)
			delete(n.pages, i)
		}
	}
	if in := size % pageSize; in != 0 && n.pages[size/pageSize] != nil {
		clear(n.change(size/pageSize, true).data[in:])
	}
}

// pagesFor is how many pages so many bytes take.
func pagesFor(size int64) int64 { return (size + pageSize - 1) / pageSize }

// recount is how many pages a node holds.
func (n *node) recount() int64 {
	held := n.reserved
	for _, i := range slices.Sorted(maps.Keys(n.pages)) {
		if i >= n.reserved {
			held++
		}
	}
	return held
}
