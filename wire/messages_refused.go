package wire

import "github.com/felixd/felixd/wire/id"

// RefusedKind names why a numbered or conditional publish was not appended.
type RefusedKind uint8

const (
	// RefusedSequenceGap: the sequence is past the next expected one.
	RefusedSequenceGap RefusedKind = iota
	// RefusedUnknownProducer: the producer is not known here, and the sequence is not 0.
	RefusedUnknownProducer
	// RefusedSequenceExpired: the sequence is older than what is remembered.
	RefusedSequenceExpired
	// RefusedSequenceReused: the sequence is remembered with other payloads; only to clients with FeatureSequenceReused.
	RefusedSequenceReused
	// RefusedNotLeader: another broker leads the shard; numbered publishes are not forwarded.
	RefusedNotLeader
	// RefusedOffsetMismatch: the expected offset of a conditional publish or commit is not the next one.
	RefusedOffsetMismatch

	refusedEnd // one past the last
)

var refusedNames = [...]string{"sequence_gap", "unknown_producer", "sequence_expired", "sequence_reused", "not_leader",
	"offset_mismatch"}

// String returns the name on the wire.
func (k RefusedKind) String() string {
	if k < refusedEnd {
		return refusedNames[k]
	}
	return "unknown"
}

// object reports whether the reason is an object on the wire, rather than a word.
func (k RefusedKind) object() bool {
	return k == RefusedSequenceGap || k == RefusedNotLeader || k == RefusedOffsetMismatch
}

// RefusedReason is a kind and what belongs to it. What belongs to other kinds is neither written nor read.
type RefusedReason struct {
	Kind     RefusedKind
	Expected uint64      // RefusedSequenceGap: the next sequence
	NodeID   string      // RefusedNotLeader: the leader
	Addr     Opt[string] // RefusedNotLeader: "IP:port" of its client listener
	Tail     id.Offset   // RefusedOffsetMismatch: the next offset of the shard
}

// PublishRefused answers PublishIdempotent, PublishIf and a conditional Commit that were not appended. A client that
// does not know the reason cannot read the message, so nothing but the kinds above may be sent.
type PublishRefused struct {
	RequestID uint64
	Reason    RefusedReason
	Message   string // prose
}

// MessageType returns "publish_refused".
func (*PublishRefused) MessageType() string { return "publish_refused" }

func (m *PublishRefused) fields(f *fields) {
	uintField(f, "request_id", &m.RequestID)
	f.refusedReason("reason", &m.Reason)
	f.str("message", unlimited, &m.Message)
}

func (r *RefusedReason) fields(f *fields) {
	switch r.Kind {
	case RefusedSequenceGap:
		uintField(f, "expected", &r.Expected)
	case RefusedNotLeader:
		f.str("node_id", MaxNameBytes, &r.NodeID)
		f.optStr("addr", MaxNameBytes, &r.Addr)
	case RefusedOffsetMismatch:
		uintField(f, "tail", &r.Tail)
	}
}

// refusedReason is a word, or an object with one member: its name is the kind, its value an object.
func (f *fields) refusedReason(name string, v *RefusedReason) {
	if !f.at(name, must) {
		return
	}
	object := v.Kind.object()
	if f.pass == writing {
		f.put(name)
		f.out = v.Kind.append(f.out)
	} else {
		object = f.accept('{')
		*v = RefusedReason{Kind: f.refusedKind(object)}
	}
	if !object {
		return
	}
	for o := f.object("reason."); f.more(&o); {
		v.fields(f)
	}
	if f.pass == writing {
		f.out = append(f.out, '}')
	} else {
		f.expect('}', "after the reason")
	}
}

// append appends the reason up to what belongs to it.
func (k RefusedKind) append(dst []byte) []byte {
	if k >= refusedEnd {
		panic("wire: encode publish_refused: a kind that no client can read")
	}
	if !k.object() {
		return appendString(dst, k.String())
	}
	dst = appendString(append(dst, '{'), k.String())
	return append(dst, ':')
}

// refusedKind consumes the name of a kind; object: as the name of a member, with its colon.
func (f *fields) refusedKind(object bool) RefusedKind {
	var name []byte
	if object {
		name = f.scanner.key()
	} else {
		name = f.text(MaxTypeBytes)
	}
	for k := range refusedEnd {
		if refusedNames[k] == string(name) && k.object() == object {
			return k
		}
	}
	f.fail("%.32q is no reason that is known, or its data is missing", name)
	return refusedEnd
}
