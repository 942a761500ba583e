package wire

// Objects and arrays inside a message. Their loops are the same while reading and while writing, so that a fields
// method names its members once for both:
//
//	for o := f.object("detail."); f.more(&o); {
//		v.fields(f)
//	}
//
// An array of objects, and an object that may hold one, may be given once in a message: what is allocated for an entry
// can be more than the shortest text that describes it, and such lists are bounded one by one.

// nested is the walk over one object below the message.
type nested struct {
	outer  level
	prefix string // of the object around it
	field  string // whose value the object is
	named  bool   // writing: the members were named
}

// object begins the object that is next. prefix is its path, for error texts.
func (f *fields) object(prefix string) nested {
	o := nested{outer: f.level, prefix: f.prefix, field: f.field}
	if f.pass == writing {
		f.out = append(f.out, '{')
		return o
	}
	f.level, f.prefix = level{}, prefix
	return o
}

// more reports whether the members of the object are to be named, once more or at all: once while writing, and as
// member says while reading. After the last time it closes the object.
func (f *fields) more(o *nested) bool {
	if f.pass == writing {
		if o.named {
			f.out = append(f.out, '}')
		}
		o.named = !o.named
		return o.named
	}
	if f.member() {
		return true
	}
	f.level, f.prefix, f.field = o.outer, o.prefix, o.field
	return false
}

// optObject is the start of an optional object that may come once: it reports whether there is one to read or, when
// set, to write. The object itself comes next.
func (f *fields) optObject(name string, set bool) bool {
	if f.pass == writing && !set || !f.at(name, may) {
		return false
	}
	if f.pass == writing {
		f.put(name)
		return true
	}
	return f.once() && !f.null()
}

// once fails for a member that was there before.
func (f *fields) once() bool {
	if f.again {
		f.fail("given twice")
	}
	return f.err == nil
}

// array begins an array that may come once; element moves through it. It reports whether there is one to read or write.
// An optional one is written even when it is empty, unless the caller leaves it out.
func (f *fields) array(name string, need required) bool {
	if !f.at(name, need) {
		return false
	}
	if f.pass == writing {
		f.put(name)
		f.out = append(f.out, '[')
		return true
	}
	return f.once() && (need == must || !f.null())
}

// element moves to element i of an array; n is how many there are to write. After the last one it closes the array.
func (f *fields) element(i, n int) bool {
	if f.pass != writing {
		return f.nextElement(i == 0)
	}
	if i == n {
		f.out = append(f.out, ']')
		return false
	}
	if i > 0 {
		f.out = append(f.out, ',')
	}
	return true
}

// nextElement consumes the opening bracket (first) or the comma in front of an array element, or the closing bracket.
func (f *fields) nextElement(first bool) bool {
	if first {
		f.expect('[', "to open an array")
		return f.err == nil && !f.accept(']')
	}
	if f.err != nil || f.accept(']') {
		return false
	}
	f.expect(',', "between two elements")
	return f.err == nil
}

// leastNumber is the shortest text of a number in an array, with its comma.
const leastNumber = len(`0,`)

// room returns for how many elements the array that is next needs memory, without consuming it: those it has, but no
// more than fit its text when each takes at least least bytes (its comma counts). So an array of other things, which
// will be refused one by one, reserves no more than its text is worth. An array of more than limit elements fails.
func (f *fields) room(least, limit int) int {
	start, n := f.pos, 0
	for f.nextElement(n == 0) {
		f.scanner.skip()
		n++
	}
	if f.err != nil {
		return 0
	}
	if n > limit {
		f.fail("%d entries are over the limit of %d", n, limit)
		return 0
	}
	size := f.pos - start
	f.pos = start
	return min(n, size/least)
}

// emptyOf returns an empty slice with room for n; nil for none, so that an absent array and an empty one are the same.
func emptyOf[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, 0, n)
}
