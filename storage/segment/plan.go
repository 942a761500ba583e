package segment

import (
	"fmt"
	"io"

	"github.com/felixd/felixd/wire/id"
)

// Verify says how much of a log a plan reads. The newest segment is always read whole; so is every header and footer.
type Verify uint8

const (
	// VerifyFull reads every byte of every segment and every index.
	VerifyFull Verify = iota
	// VerifySealed reads, of a segment that has a successor, the index and the batches after its last entry.
	VerifySealed
	// VerifyLazy reads nothing more of it. What is damaged there is found by the first reader.
	VerifyLazy
)

func (v Verify) String() string {
	switch v {
	case VerifyFull:
		return "full"
	case VerifySealed:
		return "sealed"
	case VerifyLazy:
		return "lazy"
	}
	return fmt.Sprintf("verify_%d", uint8(v))
}

// ParseVerify reads the name of a verify mode: full, sealed or lazy.
func ParseVerify(name string) (Verify, error) {
	for _, v := range []Verify{VerifyFull, VerifySealed, VerifyLazy} {
		if v.String() == name {
			return v, nil
		}
	}
	return 0, fmt.Errorf("parse verify mode: %q is none of full, sealed, lazy", name)
}

// Repair is what an operator allows beyond what a start does by itself. It is said once, to `felixd repair`, and never a setting.
type Repair uint8

const (
	// RepairNone refuses whatever might lose an acknowledged record.
	RepairNone Repair = iota
	// RepairTail cuts the newest segment at a damage after which no batch follows, and takes a log that ends below its mark.
	RepairTail
	// RepairCut cuts the log at the first damage, wherever it is: all that follows goes.
	RepairCut
)

// Entry is one name in a log's directory.
type Entry struct {
	Name    string
	Size    int64 // of a file, in bytes
	Regular bool  // a file, and not a directory, a link or anything else
}

// Reader is an open file. vfs.File is one.
type Reader interface {
	io.ReaderAt
	io.Closer
}

// PlanInput is what a plan is made of.
type PlanInput struct {
	Shard   string // the log's directory, for errors
	Entries []Entry
	// Open opens a file of Entries for reading. The plan closes it.
	Open func(name string) (Reader, error)

	// Whose log it must be. Log zero: it is not known yet, and the log may be missing.
	Log id.LogID
	// MustExist has a log that is not there refused although its id is not known. Log says the same by itself.
	MustExist   bool
	NameHash    uint64 // see NameHash
	Incarnation id.Incarnation
	Kind        LogKind

	Base    id.Offset // of the first segment, if none was ever made
	Verify  Verify
	Repair  Repair
	Spacing int64 // of indexes; 0 = DefaultIndexSpacing
	// Progress, if not nil, is told how many bytes were read and how many will be.
	Progress func(done, total int64)
}

// Found is a segment that stays.
type Found struct {
	Header
	Name    string    // of the file
	End     id.Offset // after its last record
	DataEnd int64     // after its last batch, in bytes
	Size    int64     // of the file: DataEnd, and FooterSize more if it is sealed
	Sealed  bool
	Footer  Footer // if Sealed
	// Batches, MinMicros and MaxMicros are those of the footer, or counted by the scan of the newest segment.
	Batches              uint32
	MinMicros, MaxMicros uint64
	FileSum              uint32 // Sum of the bytes before DataEnd
	Rebuild              bool   // its index is missing or cannot be used (looked at with VerifyFull and VerifySealed, and for the newest)
}

// Cut shortens a file to Size bytes, from Was.
type Cut struct {
	Segment uint64 // id
	Name    string
	Size    int64
	Was     int64
}

// Plan is everything that opening a log does to its directory, decided before anything is done. It is carried out in this order,
// each step durable before the next: a sync of durable.mark, if there is one, and of the directory, as they are, because a kill may
// have left them unsynced and the rest rests on them; Delete; Cut; a sync of the newest segment; Create; the new mark; and whatever is derived. Doing it twice,
// or half and then again, gives the same log.
type Plan struct {
	Meta    *Meta // nil: there is no log here, and nothing else is decided
	Replica Replica
	Mark    *Mark // nil: there is none that can be used

	Segments []Found  // those that stay, by id; the last one is the newest
	Delete   []string // files that go, in this order, the directory synced after each
	Cut      *Cut     // of the newest segment, or nil
	Create   *Header  // a new newest segment to be made, with CreatedMicros to be filled in; nil: the last of Segments takes appends
	Index    Index    // of the last of Segments if it takes appends: complete, as a writer goes on with it

	Base, Next id.Offset // of the log: its first record, and the one to be appended next

	TruncatedBytes int64    // that Cut and Delete take out of segments
	Repaired       string   // what is cut and why, in one sentence; empty: nothing
	Warnings       []string // about files that are not ours and damage that does not matter
}

// NewPlan reads a directory and decides. It changes nothing. A refusal is a *CorruptionError, a *VersionError or a *MissingError;
// any other error is one of reading. With a refusal the plan holds what was found before it, for a tool to show, and none of it is to
// be carried out.
func NewPlan(in *PlanInput) (*Plan, error) {
	p := planner{in: in, plan: &Plan{}}
	err := p.run()
	return p.plan, err
}
