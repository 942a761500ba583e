package segment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// planner makes one plan. Its steps run in the order of run; each may end the plan with a refusal.
type planner struct {
	in   *PlanInput
	plan *Plan
	salt Salt

	segments []listed         // by id; steps take from it what goes
	indexes  map[uint64]Entry // by segment id
	small    map[string]Entry // meta, mark, replica
	read     *progress        // nil before the sizes are known
	w        *window          // the one buffer
}

// listed is a segment file of the directory.
type listed struct {
	id uint64
	Entry
}

func (p *planner) run() error {
	p.list()
	if err := p.identity(); err != nil || p.plan.Meta == nil {
		return err
	}
	for _, step := range []func() error{p.promises, p.readMark, p.settle, p.blank, p.behindMark, p.chain} {
		if err := step(); err != nil {
			return err
		}
	}
	p.orphans()
	return nil
}

// list sorts the names of the directory.
func (p *planner) list() {
	p.indexes, p.small = make(map[uint64]Entry), make(map[string]Entry)
	for _, e := range slices.SortedFunc(slices.Values(p.in.Entries), func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) }) {
		segmentID, isSegment := ParseFileName(e.Name)
		indexID, isIndex := ParseIndexName(e.Name)
		switch {
		case !e.Regular:
			p.warn("%s is no file: it was left alone", e.Name)
		case isSegment:
			p.segments = append(p.segments, listed{segmentID, e})
		case isIndex:
			p.indexes[indexID] = e
		case e.Name == MetaName || e.Name == MarkName || e.Name == ReplicaName:
			p.small[e.Name] = e
		case IsTemp(e.Name):
			p.plan.Delete = append(p.plan.Delete, e.Name)
		case !strings.HasSuffix(e.Name, snapshotSuffix):
			p.warn("%s is none of the files of a log: it was left alone", e.Name)
		}
	}
}

func (p *planner) warn(format string, args ...any) {
	p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(format, args...))
}

// refuse makes the error of a file of this log.
func (p *planner) refuse(kind Kind, name string, segmentID uint64, position int64, want, found uint64, why string) error {
	return &CorruptionError{Shard: p.in.Shard, File: name, Segment: segmentID, Position: position, Kind: kind, Expected: want, Found: found, Why: why}
}

// identity reads log.meta and compares it with whose log this must be.
func (p *planner) identity() error {
	e, there := p.small[MetaName]
	if !there {
		_, marked := p.small[MarkName]
		_, promised := p.small[ReplicaName]
		switch {
		case marked || promised || len(p.segments) > 0:
			return p.refuse(MetaMissing, MetaName, 0, 0, 0, 0, "files of a log are here, and the one that says whose they are is not")
		case p.reported():
			return &MissingError{Shard: p.in.Shard, Expected: p.in.Log}
		}
		return nil
	}
	b, err := p.whole(e, MetaSize)
	if err != nil {
		return err
	}
	m, err := DecodeMeta(b)
	if err != nil {
		return at(err, p.in.Shard, MetaName, 0, 0)
	}
	differs := func(want, found uint64, what string) error {
		return p.refuse(MetaMismatch, MetaName, 0, 0, want, found, "this is a log of another "+what+", in the wrong place")
	}
	switch {
	case m.NameHash != p.in.NameHash:
		return differs(p.in.NameHash, m.NameHash, "shard (hash of its name)")
	case m.Kind != p.in.Kind:
		return differs(uint64(p.in.Kind), uint64(m.Kind), "kind")
	case m.Incarnation != p.in.Incarnation:
		return differs(uint64(p.in.Incarnation), uint64(m.Incarnation), "incarnation")
	case !p.in.Log.IsZero() && m.Log != p.in.Log:
		return &MissingError{Shard: p.in.Shard, Expected: p.in.Log, Found: m.Log}
	}
	p.plan.Meta, p.salt = &m, SaltOf(m.Log)
	return nil
}

// reported reports whether the log was made and told of before, so that it must be there.
func (p *planner) reported() bool { return p.in.MustExist || !p.in.Log.IsZero() }

// promises reads the replica file. Without one the replica has promised nothing.
func (p *planner) promises() error {
	e, there := p.small[ReplicaName]
	if !there {
		return nil
	}
	b, err := p.whole(e, ReplicaSize+MaxLostEnds*LostEndSize)
	if err != nil {
		return err
	}
	p.plan.Replica, err = DecodeReplica(b, p.salt)
	return at(err, p.in.Shard, ReplicaName, 0, 0)
}

// readMark reads durable.mark. One that is damaged is worth as much as none: then nothing is repaired that could have been synced.
func (p *planner) readMark() error {
	e, there := p.small[MarkName]
	if !there {
		if len(p.segments) > 0 {
			p.warn("%s is missing: nothing is repaired that may have been synced", MarkName)
		}
		return nil
	}
	b, err := p.whole(e, MarkSize)
	if err != nil {
		return err
	}
	m, err := DecodeMark(b, p.salt)
	var damaged *CorruptionError
	switch {
	case errors.As(err, &damaged):
		p.warn("%s is not used: %s: nothing is repaired that may have been synced", MarkName, damaged.Why)
	case err != nil:
		return at(err, p.in.Shard, MarkName, 0, 0)
	default:
		p.plan.Mark = &m
	}
	return nil
}

// orphans lets indexes go whose segment is not there, or goes.
func (p *planner) orphans() {
	for _, e := range p.in.Entries {
		segmentID, ok := ParseIndexName(e.Name)
		stays := slices.ContainsFunc(p.plan.Segments, func(f Found) bool { return f.ID == segmentID })
		if ok && e.Regular && !stays {
			p.plan.Delete = append(p.plan.Delete, e.Name)
		}
	}
}
