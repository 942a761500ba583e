package wire

// fields is one walk over the members of a message. Every message has one method, fields(*fields), that names its
// members once, in wire order, with their kind and whether they are required. The same method serves three passes:
//
//	writing   each call appends its member
//	reading   called until the text has no more members; the call with a member's name takes its value
//	checking  called once at the end of the text; calls for required members that never came are mistakes
//	asking    the call for request_id hands out its value, see RequestIDOf
//
// While reading, a call that finds no member waiting moves on to the next one: from senders that keep to the order of the
// wire a message is read in one round. A member that was reached in the midst of a round is offered to all calls in
// another one.
//
// A member given twice: the last one wins, except where the doc of its kind says that it may come once. A member nobody
// takes is skipped. fields must not escape to the heap while writing, so messages call these methods directly and never
// through an interface.
type fields struct {
	scanner
	level
	pass      pass
	known     *[3]string  // reading: the last values of names; nil where none are kept
	out       []byte      // writing: the text so far
	requestID Opt[uint64] // asking: what was found
}

type pass uint8

const (
	writing pass = iota
	reading
	checking
	asking
)

// level is the state of one object being read; nested objects save and restore it.
type level struct {
	name    []byte // member whose value is next, borrowed
	waiting bool   // a value is next and nobody took it yet
	late    bool   // calls of this round came before it was reached
	begun   bool   // the opening brace is behind us
	over    bool   // so is the closing one
	top     bool   // the message itself, where type is taken already
	again   bool   // the member being read was there before
	types   int    // how often a top-level type came
	index   uint   // number of the next call
	seen    uint64 // calls whose member came, by number
}

// required says whether a message without the member is refused.
type required bool

const (
	must required = true
	may  required = false
)

// writeObject starts a message of the given type.
func writeObject(dst []byte, typ string) fields {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, typ...)
	return fields{out: append(dst, '"')}
}

// close ends the message and returns the text.
func (f *fields) close() []byte { return append(f.out, '}') }

// member moves to the next member of the object being read, unless one waits that not all calls have seen, and reports
// whether the fields method is to be called again: as long as there are members, and once more at the end of the object
// for the required ones.
func (f *fields) member() bool {
	if f.pass == checking {
		f.pass = reading
		return false
	}
	if f.waiting && !f.late {
		f.waiting = false
		f.scanner.skip()
	}
	f.index, f.late = 0, false
	if f.err == nil && !f.waiting && !f.next() {
		f.pass = checking
	}
	return f.err == nil
}

// next moves to the next member; false at the end of the object, and after a mistake.
func (f *fields) next() bool {
	if f.over || f.err != nil {
		return false
	}
	f.field = ""
	if f.over = f.endOfObject(); f.over || f.err != nil {
		return false
	}
	f.name = f.key()
	if f.top && string(f.name) == "type" {
		if f.types++; f.types > 1 {
			f.field = "type"
			f.fail("given twice, which leaves open what the message is")
		}
	}
	f.waiting = f.err == nil
	return f.waiting
}

// endOfObject consumes the opening brace or the comma in front of the next member, or the closing brace.
func (f *fields) endOfObject() bool {
	if !f.begun {
		f.expect('{', "to open an object")
		f.begun = true
		return f.accept('}')
	}
	if f.accept('}') {
		return true
	}
	f.expect(',', "between two members")
	return false
}

// at is the start of every call: it reports whether the call is to read its value now or, while writing, to append
// it. While checking it notes a required member that never came. While asking it is true for request_id alone, which
// only the integer kinds take.
func (f *fields) at(name string, need required) bool {
	switch f.pass {
	case writing:
		return true
	case asking:
		return name == "request_id"
	}
	bit := uint64(1) << f.index
	f.index++
	if f.pass == checking {
		if need == must && f.seen&bit == 0 {
			f.field = name
			f.fail("is missing")
		}
		return false
	}
	if !f.waiting {
		f.late = bit > 1
		if !f.next() {
			return false
		}
	}
	if string(f.name) != name {
		return false
	}
	f.waiting = false
	f.again = f.seen&bit != 0
	f.seen |= bit
	f.field = name
	return true
}

// put appends the name of a member while writing.
func (f *fields) put(name string) {
	if f.out[len(f.out)-1] != '{' {
		f.out = append(f.out, ',')
	}
	f.out = append(f.out, '"')
	f.out = append(f.out, name...)
	f.out = append(f.out, '"', ':')
}
