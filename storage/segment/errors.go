package segment

import (
	"fmt"
	"strings"

	"github.com/felixd/felixd/wire/id"
)

// Kind says what is wrong with a file of a log. The names are part of the operator's surface: they stand in events, in the answers
// of tools and in the manual.
type Kind uint8

const (
	// Truncated: the file ends inside a structure. Expected and Found are the bytes needed and there.
	Truncated Kind = iota + 1
	// SegmentMagic: no segment header at the beginning of the file.
	SegmentMagic
	// SegmentHeaderChecksum: the segment header does not fit its checksum.
	SegmentHeaderChecksum
	// SegmentFlags: flags or reserved bytes of a segment header that are not 0.
	SegmentFlags
	// SegmentLog: a segment of another log.
	SegmentLog
	// SegmentName: a segment of another shard or of another kind of log.
	SegmentName
	// SegmentID: another segment of this log, under this one's name.
	SegmentID
	// SegmentMissing: a file that must be there is not. Expected is the id looked for, Found the one there instead.
	SegmentMissing
	// BatchMagic: neither a batch nor a footer begins where one must.
	BatchMagic
	// BatchHeaderChecksum: a batch header does not fit its checksum.
	BatchHeaderChecksum
	// BatchFlags: unknown flags, or reserved bytes that are not 0.
	BatchFlags
	// BatchKind: a kind of batch that does not exist.
	BatchKind
	// BatchTooLarge: a body above MaxBody. Expected is the bound.
	BatchTooLarge
	// BatchFields: fields of a batch header that contradict each other.
	BatchFields
	// BatchChecksum: publisher and body, as stored, do not fit their checksum.
	BatchChecksum
	// BodyChecksum: the body does not fit its checksum although it is stored as written.
	BodyChecksum
	// OffsetOutOfOrder: a batch does not begin where the one before it, or the segment, ends. Expected and Found are offsets.
	OffsetOutOfOrder
	// FooterMissing: a segment that has a successor has no footer.
	FooterMissing
	// FooterChecksum: the footer does not fit its checksum.
	FooterChecksum
	// FooterFlags: a footer with flags that are not 0.
	FooterFlags
	// FooterFields: the footer tells something else than the segment before it: its length, id, batches, offsets or times.
	FooterFields
	// FileChecksum: the bytes of a sealed segment do not fit the checksum in its footer.
	FileChecksum
	// BytesAfterFooter: a sealed segment goes on behind its footer.
	BytesAfterFooter
	// ChainGap: a segment begins past the end of its predecessor. Expected and Found are offsets.
	ChainGap
	// ChainOverlap: a segment begins before the end of its predecessor. Expected and Found are offsets.
	ChainOverlap
	// TailBelowDurableMark: the newest segment ends, or breaks, before a byte that was synced. Expected is the mark, Found the position
	// at which the log would have to be cut.
	TailBelowDurableMark
	// MarkMismatch: the newest segment is not the one whose bytes were synced: it has another base, or other bytes before the mark. One
	// of the two is an old copy.
	MarkMismatch
	// MetaMissing: segments or a mark without the file that says whose they are.
	MetaMissing
	// MetaDamaged: log.meta is not readable.
	MetaDamaged
	// MetaMismatch: log.meta belongs to another shard, incarnation or kind of log.
	MetaMismatch
	// ReplicaDamaged: the replica file is not readable.
	ReplicaDamaged
	// MarkDamaged: durable.mark is not readable. The plan goes on without it.
	MarkDamaged
	// IndexDamaged: an index is not readable or does not fit its segment. It is rebuilt.
	IndexDamaged
	// SnapshotDamaged: a snapshot is not readable. It is ignored.
	SnapshotDamaged
)

var kindNames = [...]string{
	Truncated: "truncated", SegmentMagic: "segment_magic", SegmentHeaderChecksum: "segment_header_checksum", SegmentFlags: "segment_flags",
	SegmentLog: "segment_log", SegmentName: "segment_name", SegmentID: "segment_id", SegmentMissing: "segment_missing",
	BatchMagic: "batch_magic", BatchHeaderChecksum: "batch_header_checksum", BatchFlags: "batch_flags", BatchKind: "batch_kind",
	BatchTooLarge: "batch_too_large", BatchFields: "batch_fields", BatchChecksum: "batch_checksum", BodyChecksum: "body_checksum",
	OffsetOutOfOrder: "offset_out_of_order", FooterMissing: "footer_missing", FooterChecksum: "footer_checksum", FooterFlags: "footer_flags",
	FooterFields: "footer_fields", FileChecksum: "file_checksum", BytesAfterFooter: "bytes_after_footer", ChainGap: "chain_gap",
	ChainOverlap: "chain_overlap", TailBelowDurableMark: "tail_below_durable_mark", MarkMismatch: "mark_mismatch",
	MetaMissing: "meta_missing", MetaDamaged: "meta_damaged",
	MetaMismatch: "meta_mismatch", ReplicaDamaged: "replica_damaged", MarkDamaged: "mark_damaged", IndexDamaged: "index_damaged",
	SnapshotDamaged: "snapshot_damaged",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind_%d", uint8(k))
}

// checksum reports whether Expected and Found of such an error are checksums.
func (k Kind) checksum() bool {
	switch k {
	case SegmentHeaderChecksum, BatchHeaderChecksum, BatchChecksum, BodyChecksum, FooterChecksum, FileChecksum:
		return true
	}
	return false
}

// CorruptionError says that a file of a log is not what was written to it, and where. Nothing was changed.
type CorruptionError struct {
	Shard    string // the log's directory; empty where only bytes are known
	File     string // name inside that directory
	Segment  uint64 // id, where File is a segment or belongs to one
	Position int64  // byte in File at which the broken structure begins
	Kind     Kind
	Expected uint64 // what must be there: a checksum as stored, a length, an offset; see Kind
	Found    uint64
	Why      string // one sentence more, where Kind is not enough
}

func (e *CorruptionError) Error() string {
	var b strings.Builder
	b.WriteString("the log")
	if e.Shard != "" {
		fmt.Fprintf(&b, " %s", e.Shard)
	}
	b.WriteString(" is damaged")
	if e.File != "" {
		fmt.Fprintf(&b, ": file %s", e.File)
	}
	fmt.Fprintf(&b, " (segment %d), byte %d: %s", e.Segment, e.Position, e.Kind)
	switch {
	case e.Kind.checksum():
		fmt.Fprintf(&b, ": checksum %08x expected, %08x found", e.Expected, e.Found)
	case e.Expected != e.Found:
		fmt.Fprintf(&b, ": %d expected, %d found", e.Expected, e.Found)
	}
	if e.Why != "" {
		b.WriteString(": " + e.Why)
	}
	b.WriteString("; nothing was changed. `felixd inspect` shows the whole log; restore this directory from a copy, or " + e.Kind.wayOut())
	return b.String()
}

// wayOut is what an operator can decide who has no copy.
func (k Kind) wayOut() string {
	switch k {
	case MetaMissing, MetaDamaged, MetaMismatch, ReplicaDamaged:
		return "give up what it holds with `felixd repair --accept-empty`, which keeps it aside"
	case SnapshotDamaged:
		return "leave it: what a snapshot holds is derived from the log again"
	}
	return "let `felixd repair` cut the log there, which keeps what it cuts aside"
}

// at says in which file of which log an error of a decoder happened. Other errors pass unchanged.
func at(err error, shard, file string, segmentID uint64, base int64) error {
	switch e := err.(type) {
	case *CorruptionError:
		e.Shard, e.File, e.Segment, e.Position = shard, file, segmentID, e.Position+base
	case *VersionError:
		e.Shard, e.File = shard, file
	}
	return err
}

// VersionError says that a file was written by a program that knows a newer format, or none of ours. Nothing was changed.
type VersionError struct {
	Shard string // the log's directory; empty where only bytes are known
	File  string // name inside that directory
	What  string // "version" or "kind"
	Found uint16
	Known uint16 // the newest one this program reads
}

func (e *VersionError) Error() string {
	where := "this file"
	if e.File != "" {
		where = strings.TrimPrefix(e.Shard+"/"+e.File, "/")
	}
	return fmt.Sprintf("%s has %s %d, and this program reads up to %d; nothing was changed. Open it with the release that wrote it, or a later one",
		where, e.What, e.Found, e.Known)
}

// MissingError says that a log which must be there is not: it was created and reported once, and what is there now is nothing, or
// another log. It never starts anew by itself, since that would hide the loss of everything it held.
type MissingError struct {
	Shard    string   // the log's directory
	Expected id.LogID // the one that was reported; zero: one was, and its id is not known
	Found    id.LogID // zero: none
}

func (e *MissingError) Error() string {
	found := "no log is there"
	if !e.Found.IsZero() {
		found = "log " + e.Found.String() + " is there"
	}
	log := "a log"
	if !e.Expected.IsZero() {
		log = "log " + e.Expected.String()
	}
	return fmt.Sprintf("open log %s: log_missing: %s was created here, and %s; nothing was changed. Bring the directory back, "+
		"or decide with `felixd repair --accept-empty` that what it held is given up", e.Shard, log, found)
}
