package vfs

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// twin is a file system as simple as can be: full names, whole contents. Directories have nil.
type twin map[string][]byte

func (w twin) isDir(name string) bool {
	b, ok := w[name]
	return name == "." || ok && b == nil
}

func (w twin) has(name string) bool { _, ok := w[name]; return ok }

// free reports whether a name may be made.
func (w twin) free(name string) bool {
	dir, _ := parentOf(name)
	return w.isDir(dir) && !w.has(name)
}

func (w twin) empty(name string) bool {
	for other := range w {
		if strings.HasPrefix(other, name+"/") {
			return false
		}
	}
	return true
}

func (w twin) clone() twin {
	c := maps.Clone(w)
	for name, b := range c {
		if b != nil {
			c[name] = append([]byte{}, b...)
		}
	}
	return c
}

func (w twin) write(name string, p []byte, off int) {
	b := w[name]
	if need := off + len(p); len(p) > 0 && need > len(b) {
		b = append(b, make([]byte, need-len(b))...)
	}
	copy(b[min(off, len(b)):], p)
	w[name] = b
}

func (w twin) truncate(name string, size int) {
	b := w[name]
	if size <= len(b) {
		w[name] = b[:size:size]
		return
	}
	w[name] = append(b, make([]byte, size-len(b))...)
}

// rename reports whether it could.
func (w twin) rename(from, to string) bool {
	dir, _ := parentOf(to)
	switch {
	case !w.has(from) || !w.isDir(dir):
		return false
	case from == to:
		return true
	case w.isDir(to), w.isDir(from) && (w.has(to) || strings.HasPrefix(to, from+"/")):
		return false
	}
	for _, name := range slices.Collect(maps.Keys(w)) {
		if name == from || strings.HasPrefix(name, from+"/") {
			w[to+name[len(from):]] = w[name]
			delete(w, name)
		}
	}
	return true
}

// same fails unless a disk holds just what a twin does.
func (w twin) same(t *rapid.T, m *Mem) {
	found := twin{}
	var walk func(dir string)
	walk = func(dir string) {
		list, err := m.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			name := join(dir, e.Name)
			if e.Kind == Directory {
				found[name] = nil
				walk(name)
				continue
			}
			b := make([]byte, e.Size)
			f, err := m.Open(name, false)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := f.ReadAt(b, 0); n != len(b) || err != nil && err != io.EOF {
				t.Fatal(n, err)
			}
			_ = f.Close()
			found[name] = b
		}
	}
	walk(".")
	if !maps.EqualFunc(w, found, func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }) {
		t.Fatalf("the disk holds %v, want %v", slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(w)))
	}
}

var twinNames = rapid.SampledFrom([]string{"a", "b", "d", "d/a", "d/b", "d/d", "d/d/a", "e", "e/a", "e/d"})

// TestMemIsWhatItWasToldToBe compares a Mem, and clones taken on the way, with twins.
func TestMemIsWhatItWasToldToBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, w := NewMem(), twin{}
		type kept struct {
			m *Mem
			w twin
		}
		var clones []kept
		expect := func(what string, err error, ok bool) {
			if (err == nil) != ok {
				t.Fatalf("%s: %v, the twin says %v", what, err, ok)
			}
		}
		opened := func(do func(f File, name string)) {
			name := twinNames.Draw(t, "name")
			f, err := m.Open(name, true)
			expect("open", err, w.has(name) && !w.isDir(name))
			if err == nil {
				do(f, name)
				expect("close", f.Close(), true)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				name := twinNames.Draw(t, "name")
				f, err := m.Create(name)
				expect("create", err, w.free(name))
				if err == nil {
					w[name] = []byte{}
					expect("close", f.Close(), true)
				}
			},
			"mkdir": func(t *rapid.T) {
				name := twinNames.Draw(t, "name")
				ok := w.free(name)
				expect("mkdir", m.Mkdir(name), ok)
				if ok {
					w[name] = nil
				}
			},
			"remove": func(t *rapid.T) {
				name := twinNames.Draw(t, "name")
				ok := w.has(name) && w.empty(name)
				expect("remove", m.Remove(name), ok)
				if ok {
					delete(w, name)
				}
			},
			"rename": func(t *rapid.T) {
				from, to := twinNames.Draw(t, "from"), twinNames.Draw(t, "to")
				expect("rename", m.Rename(from, to), w.rename(from, to))
			},
			"write": func(t *rapid.T) {
				opened(func(f File, name string) {
					p := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, rapid.SampledFrom([]int{0, 1, 100, 4096, 9000}).Draw(t, "length"))
					off := rapid.SampledFrom([]int{0, 1, 4095, 4096, 5000, 20000}).Draw(t, "off")
					n, err := f.WriteAt(p, int64(off))
					expect("write", err, n == len(p))
					w.write(name, p, off)
				})
			},
			"truncate": func(t *rapid.T) {
				opened(func(f File, name string) {
					size := rapid.SampledFrom([]int{0, 1, 4096, 5000, 30000}).Draw(t, "size")
					expect("truncate", f.Truncate(int64(size)), true)
					w.truncate(name, size)
				})
			},
			"reserve": func(t *rapid.T) {
				opened(func(f File, _ string) { expect("preallocate", f.Preallocate(20000), true) })
			},
			"sync": func(t *rapid.T) { opened(func(f File, _ string) { expect("sync", f.Sync(), true) }) },
			"syncdir": func(t *rapid.T) {
				name := twinNames.Draw(t, "name")
				expect("syncdir", m.SyncDir(name), w.isDir(name))
				expect("sync of the root", m.SyncDir("."), true)
			},
			"clone": func(t *rapid.T) {
				if len(clones) < 8 {
					clones = append(clones, kept{m.Clone(), w.clone()})
				}
			},
			"go on with the clone": func(t *rapid.T) {
				c := kept{m, w}
				m, w = m.Clone(), w.clone()
				if len(clones) < 8 {
					clones = append(clones, c)
				}
			},
			"crash": func(t *rapid.T) { m.Crash(func(n int) int { return n / 2 }) },
			"": func(t *rapid.T) {
				w.same(t, m)
				checkBooks(t, m)
			},
		})
		for _, c := range clones {
			c.w.same(t, c.m)
			checkBooks(t, c.m)
		}
		if a, b := m.Hash(), m.Clone().Hash(); a != b {
			t.Fatalf("a clone has hash %x, not %x", b, a)
		}
	})
}

// checkBooks compares what a Mem keeps beside its files with a count from nothing.
func checkBooks(t *rapid.T, m *Mem) {
	d := &m.disk
	refs := map[ino]int{rootIno: 2}
	var used int64
	for at, n := range d.nodes {
		for _, to := range n.names {
			refs[to]++
		}
		for _, to := range n.kept {
			refs[to]++
		}
		if n.held != n.recount() {
			t.Fatalf("file %d: holds %d pages, counted %d", at, n.held, n.recount())
		}
		if n.links > 0 || m.opens[at] > 0 {
			used += n.held
		}
	}
	for _, c := range d.changes {
		for _, e := range c.edges {
			if e.at != 0 {
				refs[e.at]++
			}
		}
	}
	for at, n := range m.opens {
		refs[at] += n
	}
	if !maps.Equal(refs, d.refs) || len(refs) != len(d.nodes) {
		t.Fatalf("references %v, counted %v, of %d nodes", d.refs, refs, len(d.nodes))
	}
	if used != d.used {
		t.Fatalf("uses %d pages, counted %d", d.used, used)
	}
}
