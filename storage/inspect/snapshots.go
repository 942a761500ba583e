package inspect

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// Snapshot is one file of derived state. What is wrong with one costs a start the time to derive it again, and no record.
type Snapshot struct {
	File  string `json:"file"`
	Form  string `json:"form"` // whole, streamed, or unknown
	AsOf  uint64 `json:"as_of"`
	Bytes int64  `json:"bytes"` // of the file
	// State is ok; ends_ok, of a streamed one of which only the ends were read; ahead, past the end of the log, so that a start removes it; behind,
	// before the log's first record, so that it is not used; damaged; or unreadable.
	State string `json:"state"`
	Why   string `json:"why,omitempty"` // of one that is damaged or unreadable
}

// wholeMost bounds a snapshot that is read whole, as whoever uses it does.
const wholeMost = 64 << 20

// snapshotsOf looks at the snapshots of a log, by name. With VerifyFull they are read to the end.
func snapshotsOf(in *segment.PlanInput, plan *segment.Plan) (list []Snapshot) {
	salt := segment.SaltOf(plan.Meta.Log)
	for _, e := range in.Entries {
		if !e.Regular || !strings.HasSuffix(e.Name, segment.SnapshotName("")) {
			continue
		}
		s := Snapshot{File: e.Name, Form: "unknown", Bytes: e.Size}
		err := s.look(in, salt)
		var damaged *segment.CorruptionError
		switch {
		case errors.As(err, &damaged):
			s.State, s.Why = "damaged", damaged.Why
		case err != nil:
			s.State, s.Why = "unreadable", err.Error()
		case s.AsOf > uint64(plan.Next):
			s.State = "ahead"
		case s.AsOf < uint64(plan.Base):
			s.State = "behind"
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Snapshot) int { return strings.Compare(a.File, b.File) })
	return list
}

// look reads one, and finds it to be good or says what is wrong.
func (s *Snapshot) look(in *segment.PlanInput, salt segment.Salt) error {
	f, err := in.Open(s.File)
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	head := make([]byte, min(4, s.Bytes))
	if _, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		return err
	}
	var asOf id.Offset
	switch {
	case segment.IsStream(head):
		s.Form = "streamed"
		asOf, s.State, err = lookStream(f, s.Bytes, salt, in.Verify)
	case segment.IsSnapshot(head) && s.Bytes <= wholeMost:
		s.Form, s.State = "whole", "ok"
		b := make([]byte, s.Bytes)
		if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
			return err
		}
		asOf, _, err = segment.DecodeSnapshot(b, salt)
	default:
		err = &segment.CorruptionError{Kind: segment.SnapshotDamaged, Why: "it does not begin like a snapshot, or is longer than one of its form"}
	}
	s.AsOf = uint64(asOf)
	return err
}

// lookStream reads the ends of a streamed snapshot, and what is between them if all is to be read.
func lookStream(f segment.Reader, size int64, salt segment.Salt, verify segment.Verify) (id.Offset, string, error) {
	t, err := segment.ReadStreamTrailer(f, size, salt)
	if err != nil || verify != segment.VerifyFull {
		return t.AsOf, "ends_ok", err
	}
	_, err = io.Copy(io.Discard, segment.NewStreamReader(f, size, salt, &t))
	return t.AsOf, "ok", err
}
