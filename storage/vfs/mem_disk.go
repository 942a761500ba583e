package vfs

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
)

// rootIno is the root directory.
const rootIno = ino(1)

// maxBase bounds one part of a name, in bytes, as Linux file systems do.
const maxBase = 255

// disk is the state of a Mem: what is there now, what is durable, and which changes of names lie between.
type disk struct {
	by       *token
	nodes    map[ino]*node
	refs     map[ino]int // names now, durable names, changes that name it, openings; none: it is gone
	next     ino
	changes  []change // of names, not durable, oldest first
	capacity int64    // bytes; negative: none
	used     int64    // pages that files with a name, or open, hold
}

func newDisk() disk {
	by := &token{}
	root := newNode(by, true)
	root.links = 1
	return disk{
		by: by, next: rootIno + 1, capacity: Unlimited,
		nodes: map[ino]*node{rootIno: root}, refs: map[ino]int{rootIno: 2},
	}
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// own returns a node to be changed: a copy of it if a clone may still see it.
func (d *disk) own(at ino) *node {
	n := d.nodes[at]
	if n.by != d.by {
		n = n.copyFor(d.by)
		d.nodes[at] = n
	}
	return n
}

// refer counts what keeps a node; the last one to go takes it along.
func (d *disk) refer(at ino, by int) {
	d.refs[at] += by
	if d.refs[at] > 0 {
		return
	}
	if d.refs[at] < 0 {
		panic("vfs: Mem: a file was let go more often than held")
	}
	n := d.nodes[at]
	delete(d.refs, at)
	delete(d.nodes, at)
	for _, base := range slices.Sorted(maps.Keys(n.kept)) {
		d.refer(n.kept[base], -1)
	}
}

// find follows a checked name.
func (d *disk) find(op, name string) (ino, error) {
	at := rootIno
	if name == "." {
		return at, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		n := d.nodes[at]
		if !n.dir {
			return 0, &fs.PathError{Op: op, Path: name, Err: syscall.ENOTDIR}
		}
		if len(part) > maxBase {
			return 0, &fs.PathError{Op: op, Path: name, Err: syscall.ENAMETOOLONG}
		}
		next, ok := n.names[part]
		if !ok {
			return 0, &fs.PathError{Op: op, Path: name, Err: syscall.ENOENT}
		}
		at = next
	}
	return at, nil
}

func (d *disk) file(op, name string) (ino, error) {
	at, err := d.find(op, name)
	if err == nil && d.nodes[at].dir {
		return 0, notRegular(name, Directory)
	}
	return at, err
}

func (d *disk) dir(op, name string) (ino, error) {
	at, err := d.find(op, name)
	if err == nil && !d.nodes[at].dir {
		return 0, &NameError{Name: name, Why: "it is no directory"}
	}
	return at, err
}

// parent finds the directory that holds, or shall hold, a name.
func (d *disk) parent(op, name string) (ino, string, error) {
	dir, base := parentOf(name)
	at, err := d.find(op, dir)
	if err == nil && !d.nodes[at].dir {
		err = &fs.PathError{Op: op, Path: name, Err: syscall.ENOTDIR}
	}
	if err == nil && len(base) > maxBase {
		err = &fs.PathError{Op: op, Path: name, Err: syscall.ENAMETOOLONG}
	}
	return at, base, err
}

// make makes a file or directory.
func (d *disk) make(op, name string, dir bool) (ino, error) {
	in, base, err := d.parent(op, name)
	if err != nil {
		return 0, err
	}
	if _, taken := d.nodes[in].names[base]; taken {
		return 0, &fs.PathError{Op: op, Path: name, Err: syscall.EEXIST}
	}
	at := d.next
	d.next++
	n := newNode(d.by, dir)
	n.links = 1
	d.nodes[at] = n
	d.refer(at, 1)
	d.own(in).names[base] = at
	d.changed(change{edges: []edge{{in, base, at}}})
	return at, nil
}

// remove takes a name away and returns what it stood for, which still has the reference of that name.
func (d *disk) remove(name string) (ino, error) {
	in, base, err := d.parent("remove", name)
	if err != nil {
		return 0, err
	}
	at, ok := d.nodes[in].names[base]
	if !ok {
		return 0, &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOENT}
	}
	if len(d.nodes[at].names) > 0 {
		return 0, &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
	}
	delete(d.own(in).names, base)
	d.own(at).links = 0
	d.changed(change{edges: []edge{{in, base, 0}}})
	return at, nil
}

// rename moves a name and returns the file that it replaced, like remove.
func (d *disk) rename(from, to string) (ino, error) {
	fromDir, fromBase, err := d.parent("rename", from)
	if err != nil {
		return 0, err
	}
	at, ok := d.nodes[fromDir].names[fromBase]
	if !ok {
		return 0, &fs.PathError{Op: "rename", Path: from, Err: syscall.ENOENT}
	}
	toDir, toBase, err := d.parent("rename", to)
	if err != nil || from == to {
		return 0, err
	}
	isDir := d.nodes[at].dir
	replaced := d.nodes[toDir].names[toBase]
	if err := d.mayReplace(isDir, replaced, from, to); err != nil {
		return 0, &fs.PathError{Op: "rename", Path: to, Err: err}
	}
	delete(d.own(fromDir).names, fromBase)
	d.own(toDir).names[toBase] = at
	if replaced != 0 {
		d.own(replaced).links = 0
	}
	d.changed(change{edges: []edge{{fromDir, fromBase, 0}, {toDir, toBase, at}}, moved: isDir, across: fromDir != toDir})
	return replaced, nil
}

// mayReplace is what a rename asks of its target.
func (d *disk) mayReplace(isDir bool, target ino, from, to string) error {
	switch {
	case target != 0 && d.nodes[target].dir:
		return syscall.EEXIST
	case target != 0 && isDir:
		return syscall.ENOTDIR
	case isDir && strings.HasPrefix(to, from+"/"):
		return syscall.EINVAL
	}
	return nil
}

func (d *disk) entry(base string, at ino) Entry {
	n := d.nodes[at]
	if n.dir {
		return Entry{Name: base, Kind: Directory}
	}
	return Entry{Name: base, Kind: Regular, Size: n.size}
}

func (d *disk) list(at ino) []Entry {
	n := d.nodes[at]
	list := make([]Entry, 0, len(n.names))
	for _, base := range slices.Sorted(maps.Keys(n.names)) {
		list = append(list, d.entry(base, n.names[base]))
	}
	return list
}

// holder is what a lock file says.
func (d *disk) holder(at ino) string {
	b := make([]byte, holderBytes)
	return readableHolder(b[:d.nodes[at].read(b, 0)])
}

// room takes pages of the capacity.
func (d *disk) room(pages int64) bool {
	if pages > 0 && d.capacity >= 0 && d.used+pages > d.capacity/pageSize {
		return false
	}
	d.used += pages
	return true
}

// write writes page by page, as far as there is room.
func (d *disk) write(at ino, p []byte, off int64) (int, error) {
	n := d.own(at)
	done := 0
	for done < len(p) {
		pos := off + int64(done)
		i, in := pos/pageSize, pos%pageSize
		if n.pages[i] == nil && i >= n.reserved {
			if !d.room(1) {
				return done, noSpace
			}
			n.held++
		}
		// Bytes that are there already go: a crash may still find them.
		done += copy(n.change(i, pos < n.size).data[in:], p[done:])
		n.resize(max(n.size, off+int64(done)))
	}
	return done, nil
}

// truncate sets the size; what was preallocated past it is given back.
func (d *disk) truncate(at ino, size int64) {
	n := d.own(at)
	if size < n.size {
		n.cut(size)
	}
	n.resize(size)
	n.reserved = min(n.reserved, pagesFor(size))
	held := n.recount()
	d.used += held - n.held
	n.held = held
}

// reserve preallocates, all of it or nothing.
func (d *disk) reserve(at ino, size int64) error {
	n := d.own(at)
	want := pagesFor(size)
	if want <= n.reserved {
		return nil
	}
	was := n.reserved
	n.reserved = want
	held := n.recount()
	if !d.room(held - n.held) {
		n.reserved = was
		return noSpace
	}
	n.held = held
	return nil
}
