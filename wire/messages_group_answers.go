package wire

import "github.com/felixd/felixd/wire/id"

// Answers to group requests. Settlements are answered by CacheOK.

// GroupRecords answers GroupPoll: at most MaxGroupRecords, in the order of their offsets except that reclaimed ones come
// first. None is the ordinary answer when there is no work.
type GroupRecords struct {
	Records   []GroupRecord
	RequestID uint64
}

// GroupRecord is one record handed out.
type GroupRecord struct {
	Offset          id.Offset
	Payload         []byte
	Attempts        uint32      // 1 on the first delivery; 0: not reported
	SkippedBefore   uint64      // offsets just below that hold no record; only to clients with FeatureGroupSkipped
	Publisher       Opt[string] // principal, at most MaxPublisherBytes; only to clients with FeatureGroupPublisher
	TimestampMicros Opt[uint64] // append time, microseconds since the Unix epoch; with FeatureRecordTimestamps
}

// GroupDeadLetterList answers GroupDeadLetters.
type GroupDeadLetterList struct {
	Offsets   []id.Offset // strictly ascending; encoding panics on anything else
	RequestID uint64
}

// GroupExtended answers GroupExtend.
type GroupExtended struct {
	VisibleMillis uint64 // granted from now, in milliseconds
	RequestID     uint64
}

// GroupPosition answers GroupSeek.
type GroupPosition struct {
	Offset    id.Offset
	Moved     bool // false: IfNew found the group
	RequestID uint64
}

// GroupInfo answers GroupDescribe.
type GroupInfo struct {
	Committed   Opt[id.Offset] // unset: the group has no position yet
	Tail        id.Offset      // of the shard
	InFlight    uint64         // records handed out and not settled
	Owed        uint64         // records to be handed out again
	DeadLetters uint64
	RequestID   uint64
}

// GroupDeleted answers GroupDelete.
type GroupDeleted struct {
	Existed   bool
	RequestID uint64
}

// MessageType returns "group_records".
func (*GroupRecords) MessageType() string { return "group_records" }

func (m *GroupRecords) fields(f *fields) {
	f.groupRecords("records", &m.Records)
	uintField(f, "request_id", &m.RequestID)
}

func (r *GroupRecord) fields(f *fields) {
	uintField(f, "offset", &r.Offset)
	f.bytes("payload", &r.Payload)
	defUint(f, "attempts", &r.Attempts)
	countUint(f, "skipped_before", &r.SkippedBefore)
	f.optStr("publisher", MaxPublisherBytes, &r.Publisher)
	optUint(f, "timestamp_micros", &r.TimestampMicros)
}

const leastGroupRecord = len(`{"offset":0,"payload":""},`)

// groupRecords is an array of at most MaxGroupRecords objects.
func (f *fields) groupRecords(name string, v *[]GroupRecord) {
	if !f.array(name, must) {
		return
	}
	if f.pass == reading {
		*v = make([]GroupRecord, 0, f.room(leastGroupRecord, MaxGroupRecords))
	}
	for i := 0; f.element(i, len(*v)); i++ {
		if f.pass == reading {
			*v = append(*v, GroupRecord{})
		}
		for o := f.object("records."); f.more(&o); {
			(*v)[i].fields(f)
		}
	}
}

// MessageType returns "group_dead_letter_list".
func (*GroupDeadLetterList) MessageType() string { return "group_dead_letter_list" }

func (m *GroupDeadLetterList) fields(f *fields) {
	f.ascending("offsets", &m.Offsets)
	uintField(f, "request_id", &m.RequestID)
}

// ascending is an array of offsets, each larger than the one before it. So a long list has large offsets in it, and
// their text is never much shorter than what it takes in memory: the list needs no limit of its own.
func (f *fields) ascending(name string, v *[]id.Offset) {
	if !f.array(name, must) {
		return
	}
	if f.pass == reading {
		*v = make([]id.Offset, 0, f.roomAscending())
	}
	for i := 0; f.element(i, len(*v)); i++ {
		if f.pass == reading {
			*v = append(*v, id.Offset(f.scanner.uint(1<<64-1)))
			continue
		}
		if i > 0 && (*v)[i] <= (*v)[i-1] {
			panic("wire: encode group_dead_letter_list: offsets out of order")
		}
		f.out = appendUint(f.out, uint64((*v)[i]))
	}
}

// roomAscending returns how many integers the array that is next has, without consuming it, and fails if they are not
// strictly ascending.
func (f *fields) roomAscending() int {
	start, n, last := f.pos, 0, uint64(0)
	for ; f.nextElement(n == 0); n++ {
		v := f.scanner.uint(1<<64 - 1)
		if f.err == nil && n > 0 && v <= last {
			f.fail("%d follows %d; the lowest offset comes first, and each one once", v, last)
		}
		last = v
	}
	if f.err != nil {
		return 0
	}
	f.pos = start
	return n
}

// MessageType returns "group_extended".
func (*GroupExtended) MessageType() string { return "group_extended" }

func (m *GroupExtended) fields(f *fields) {
	uintField(f, "visible_ms", &m.VisibleMillis)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "group_position".
func (*GroupPosition) MessageType() string { return "group_position" }

func (m *GroupPosition) fields(f *fields) {
	uintField(f, "offset", &m.Offset)
	f.boolField("moved", &m.Moved)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "group_info".
func (*GroupInfo) MessageType() string { return "group_info" }

func (m *GroupInfo) fields(f *fields) {
	optUint(f, "committed", &m.Committed)
	uintField(f, "tail", &m.Tail)
	uintField(f, "in_flight", &m.InFlight)
	uintField(f, "owed", &m.Owed)
	uintField(f, "dead_letters", &m.DeadLetters)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "group_deleted".
func (*GroupDeleted) MessageType() string { return "group_deleted" }

func (m *GroupDeleted) fields(f *fields) {
	f.boolField("existed", &m.Existed)
	uintField(f, "request_id", &m.RequestID)
}
