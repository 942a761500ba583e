package wire

import "github.com/felixd/felixd/wire/id"

// Members that are a word or an object with one member: where to start, and what a conditional write asks for.

// start is "latest", "earliest" or {"offset":n}.
func (f *fields) start(name string, v *Start) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		f.out = v.append(f.out)
		return
	}
	*v = f.readStart()
}

// optStart is the same, and may be absent.
func (f *fields) optStart(name string, v *Opt[Start]) {
	switch {
	case !f.at(name, may):
	case f.pass == writing:
		if v.Set {
			f.put(name)
			f.out = v.V.append(f.out)
		}
	case f.null():
		*v = Opt[Start]{}
	default:
		*v = Some(f.readStart())
	}
}

func (s Start) append(dst []byte) []byte {
	switch s.Kind {
	case StartEarliest:
		return append(dst, `"earliest"`...)
	case StartOffset:
		return appendOneUint(dst, "offset", uint64(s.Offset))
	}
	return append(dst, `"latest"`...)
}

func (f *fields) readStart() Start {
	if f.accept('{') {
		return Start{Kind: StartOffset, Offset: id.Offset(f.oneUint("offset"))}
	}
	switch text := f.text(MaxTypeBytes); string(text) {
	case "latest":
		return Start{Kind: StartLatest}
	case "earliest":
		return Start{Kind: StartEarliest}
	default:
		f.fail(`%.32q is neither "latest" nor "earliest" nor {"offset":n}`, text)
		return Start{}
	}
}

// condition is "absent" or {"version":n}.
func (f *fields) condition(name string, v *CacheCondition) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		if v.Version.Set {
			f.out = appendOneUint(f.out, "version", v.Version.V)
		} else {
			f.out = append(f.out, `"absent"`...)
		}
		return
	}
	*v = CacheCondition{}
	if f.accept('{') {
		v.Version = Some(f.oneUint("version"))
	} else if text := f.text(MaxTypeBytes); string(text) != "absent" {
		f.fail(`%.32q is neither "absent" nor {"version":n}`, text)
	}
}

func appendOneUint(dst []byte, name string, v uint64) []byte {
	dst = append(dst, '{', '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	return append(appendUint(dst, v), '}')
}

// oneUint consumes the rest of an object that has one member, an integer of this name.
func (f *fields) oneUint(name string) uint64 {
	if found := f.scanner.key(); f.err == nil && string(found) != name {
		f.fail("an object with the one member %q expected", name)
	}
	v := f.scanner.uint(1<<64 - 1)
	f.expect('}', "after "+name)
	return v
}
