package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// Action is what an operator decides about one log that a start refuses.
type Action uint8

const (
	// CutTail cuts the newest segment at a damage after which no whole batch follows, and takes a log that ends before bytes that were
	// synced. What is lost is the end of the log.
	CutTail Action = iota + 1
	// CutAtDamage cuts the log at its first damage, wherever it is: all records after it go, whole or not.
	CutAtDamage
	// AcceptEmpty takes the whole directory away and begins an empty log under the id by which the log is known.
	AcceptEmpty
)

func (a Action) String() string {
	switch a {
	case CutTail:
		return "cut-tail"
	case CutAtDamage:
		return "cut-at-damage"
	case AcceptEmpty:
		return "accept-empty"
	}
	return fmt.Sprintf("action_%d", uint8(a))
}

// ParseAction reads an action as it is written on a command line: cut-tail, cut-at-damage or accept-empty.
func ParseAction(name string) (Action, error) {
	for _, a := range []Action{CutTail, CutAtDamage, AcceptEmpty} {
		if a.String() == name {
			return a, nil
		}
	}
	return 0, fmt.Errorf("parse action: %q is none of cut-tail, cut-at-damage, accept-empty", name)
}

// RepairOptions says what is to be done to which log.
type RepairOptions struct {
	Dir    string // the log's directory below the root, as `felixd inspect` prints it
	Action Action
	// Yes is the operator's word. Without it the outcome says what would be done, and nothing is.
	Yes bool

	// For AcceptEmpty only. Log is the id the log is known by, as log_missing names it; zero: the one in the directory's log.meta.
	Log id.LogID
	// Base is the first offset of the empty log. Readers hold offsets of the lost one: begin past them. The greatest end that can still be
	// seen in the directory is taken if it is greater.
	Base id.Offset
	// Generation is recorded as the one the log was made under.
	Generation id.Generation
	// NowMicros is the wall clock, microseconds since the Unix epoch, for the new log.meta.
	NowMicros uint64

	Holder string // who holds the lock meanwhile, for whoever finds it taken
}

// Outcome is what a repair did, or would do.
type Outcome struct {
	Dir      string   `json:"dir"`
	Action   string   `json:"action"`
	Done     bool     `json:"done"`               // false: Yes was not given, or there was nothing to do
	Steps    []string `json:"steps"`              // what is taken away and made, one sentence each; empty: a start opens this log by itself
	Salvaged string   `json:"salvaged,omitempty"` // directory that holds copies of all that was taken away
	Base     uint64   `json:"base"`               // of the log afterwards
	End      uint64   `json:"end"`
}

// Repair carries out one decision about one log, under the store's lock: an exclusive one with Yes, else a shared one. It fails with *NotAStoreError, *NotALogError,
// *vfs.LockedError (the store is in use), with the *segment.CorruptionError or *segment.VersionError that the action does not
// cover, or with an error of the disk; the log is then as it was, or can be repaired again.
func Repair(disk vfs.FS, o RepairOptions) (*Outcome, error) {
	p, err := placeOf(o.Dir)
	if err != nil {
		return nil, err
	}
	if o.Action < CutTail || o.Action > AcceptEmpty {
		return nil, fmt.Errorf("repair %s: no such action: %s", p.dir, o.Action)
	}
	switch _, err := disk.Stat(segment.LockName); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &NotAStoreError{Why: segment.LockName + " is not there"}
	case err != nil:
		return nil, fmt.Errorf("repair %s: %w", p.dir, err)
	}
	lock, err := disk.Lock(segment.LockName, !o.Yes, o.Holder)
	if err != nil {
		return nil, fmt.Errorf("repair %s: %w", p.dir, err)
	}
	r := repair{disk: disk, o: &o, place: p, out: Outcome{Dir: p.dir, Action: o.Action.String(), Steps: []string{}}}
	if o.Action == AcceptEmpty {
		err = r.empty()
	} else {
		err = r.cut()
	}
	if unlock := lock.Close(); err == nil {
		err = unlock
	}
	if err != nil {
		return nil, fmt.Errorf("repair %s: %w", p.dir, err)
	}
	return &r.out, nil
}

// repair is one call of Repair.
type repair struct {
	disk  vfs.FS
	o     *RepairOptions
	place *place
	out   Outcome
}

func (r *repair) step(format string, args ...any) {
	r.out.Steps = append(r.out.Steps, fmt.Sprintf(format, args...))
}

// cut cuts the log as the plan says that a start would make with the operator's allowance.
func (r *repair) cut() error {
	in, err := r.place.input(r.disk, r.place.dir)
	if err != nil {
		return err
	}
	switch plan, err := segment.NewPlan(in); {
	case err == nil:
		r.out.Base, r.out.End = uint64(plan.Base), uint64(plan.Next)
		return nil // a start opens it; there is nothing to decide
	case !refusal(err):
		return err
	}
	in.Repair = segment.RepairTail
	if r.o.Action == CutAtDamage {
		in.Repair = segment.RepairCut
	}
	plan, err := segment.NewPlan(in) // of the whole log, to its end
	if err != nil {
		return err
	}
	r.tell(plan)
	if r.place.kind == segment.Cache {
		if plan.Replica.Lost, err = r.given(plan, in.Entries); err != nil {
			return err
		}
		told := plan.Replica.Lost[len(plan.Replica.Lost)-1]
		r.step("versions from %d up to %d, which clients may hold, are not given again: the log goes on behind them", told.End, told.Cursors)
	}
	if !r.o.Yes {
		return nil
	}
	if err := r.salvage(plan, in.Entries); err != nil {
		return err
	}
	if r.place.kind == segment.Cache { // before anything goes from which it is told
		if err := r.small(segment.ReplicaName, segment.AppendReplica(nil, segment.SaltOf(plan.Meta.Log), &plan.Replica)); err != nil {
			return err
		}
	}
	if err := r.carryOut(plan, in.Entries); err != nil {
		return err
	}
	r.out.Done = true
	return r.prove()
}

// tell puts a plan into sentences.
func (r *repair) tell(plan *segment.Plan) {
	r.out.Base, r.out.End = uint64(plan.Base), uint64(plan.Next)
	r.step("%s", plan.Repaired)
	if c := plan.Cut; c != nil {
		r.step("cut %s from %d to %d bytes", c.Name, c.Was, c.Size)
	}
	for _, name := range plan.Delete {
		r.step("remove %s", name)
	}
	if c := plan.Create; c != nil {
		r.step("make %s at offset %d", segment.FileName(c.ID), c.Base)
	}
	r.step("%d bytes of segments go; the log then holds the offsets from %d up to %d", plan.TruncatedBytes, plan.Base, plan.Next)
}

// prove plans once more: a start must open the log now.
func (r *repair) prove() error {
	in, err := r.place.input(r.disk, r.place.dir)
	if err != nil {
		return err
	}
	plan, err := segment.NewPlan(in)
	if err != nil {
		return fmt.Errorf("the log still does not open: %w", err)
	}
	r.out.Base, r.out.End = uint64(plan.Base), uint64(plan.Next)
	return nil
}

// path is the name of one of the log's files below the root.
func (r *repair) path(name string) string { return path.Join(r.place.dir, name) }
