package wire

import "github.com/felixd/felixd/wire/id"

// An event and changes of state in one record, for clients with FeatureAtomicCommit.

// Commit appends an event and applies changes to the state of an entity, together or not at all.
type Commit struct {
	TenantID, Namespace, Stream string
	EntityKey                   []byte // routes the commit, at most MaxKeyBytes
	Event                       []byte
	Changes                     []Change
	RequestID                   uint64
	ExpectedOffset              Opt[id.Offset] // append only there, needs FeaturePublishConditional
}

// Change is one change of state.
type Change struct {
	Delete bool   // remove the key; else put the value
	Key    string // at most MaxCacheKeyBytes
	Value  []byte // of a put
}

// CommitOK answers a Commit that was appended.
type CommitOK struct {
	RequestID uint64
	Offset    id.Offset
}

// StateGet reads one key of an entity's state.
type StateGet struct {
	TenantID, Namespace, Stream string
	EntityKey                   []byte // at most MaxKeyBytes
	Key                         string // at most MaxCacheKeyBytes
	RequestID                   uint64
}

// StateValue answers StateGet.
type StateValue struct {
	Value     Opt[[]byte]    // unset: there is none; always written, as null then
	Version   Opt[id.Offset] // of the commit that wrote the value
	AsOf      Opt[id.Offset] // of the last commit that this answer reflects
	RequestID uint64
}

// MessageType returns "commit".
func (*Commit) MessageType() string { return "commit" }

func (m *Commit) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	f.entityKey("entity_key", &m.EntityKey)
	f.bytes("event", &m.Event)
	f.changes("changes", &m.Changes)
	uintField(f, "request_id", &m.RequestID)
	optUint(f, "expected_offset", &m.ExpectedOffset)
}

// MessageType returns "commit_ok".
func (*CommitOK) MessageType() string { return "commit_ok" }

func (m *CommitOK) fields(f *fields) {
	uintField(f, "request_id", &m.RequestID)
	uintField(f, "offset", &m.Offset)
}

// MessageType returns "state_get".
func (*StateGet) MessageType() string { return "state_get" }

func (m *StateGet) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	f.entityKey("entity_key", &m.EntityKey)
	f.str("key", MaxCacheKeyBytes, &m.Key)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "state_value".
func (*StateValue) MessageType() string { return "state_value" }

func (m *StateValue) fields(f *fields) {
	f.nullBytes("value", &m.Value)
	optUint(f, "version", &m.Version)
	optUint(f, "as_of", &m.AsOf)
	uintField(f, "request_id", &m.RequestID)
}

// entityKey is a base64 string of at most MaxKeyBytes bytes.
func (f *fields) entityKey(name string, v *[]byte) {
	f.bytes(name, v)
	if f.pass == reading && f.field == name && len(*v) > MaxKeyBytes {
		f.fail("%d bytes are over the limit of %d", len(*v), MaxKeyBytes)
	}
}

// leastChange is that of a delete, the shorter one.
const leastChange = len(`{"op":"delete","key":""},`)

// changes is an array of objects; absent is empty, and an empty one is written.
func (f *fields) changes(name string, v *[]Change) {
	if !f.array(name, may) {
		return
	}
	if f.pass == reading {
		*v = emptyOf[Change](f.room(leastChange, unlimited))
	}
	for i := 0; f.element(i, len(*v)); i++ {
		if f.pass == reading {
			*v = append(*v, Change{})
		}
		for o := f.object("changes."); f.more(&o); {
			(*v)[i].fields(f)
		}
	}
}

// fields: whether the value is required is known by the end of the object, which is when that is asked.
func (c *Change) fields(f *fields) {
	f.op("op", &c.Delete)
	f.str("key", MaxCacheKeyBytes, &c.Key)
	if !c.Delete {
		f.bytes("value", &c.Value)
	} else if f.pass == checking {
		c.Value = nil // it came before op
	}
}

// op is "put" or "delete".
func (f *fields) op(name string, remove *bool) {
	if !f.at(name, must) {
		return
	}
	if f.pass == writing {
		f.put(name)
		if *remove {
			f.out = append(f.out, `"delete"`...)
		} else {
			f.out = append(f.out, `"put"`...)
		}
		return
	}
	switch text := f.text(MaxTypeBytes); string(text) {
	case "put":
		*remove = false
	case "delete":
		*remove = true
	default:
		f.fail(`%.32q is neither "put" nor "delete"`, text)
	}
}
