package inspect

import (
	"errors"
	"math"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// Verdict is what a start would do with a log.
type Verdict string

const (
	// Opens: everything is whole.
	Opens Verdict = "opens"
	// Repairs: it opens, and what a crash left unfinished is settled first.
	Repairs Verdict = "opens_after_repair"
	// Refuses: it does not open, and nothing is changed.
	Refuses Verdict = "refuses"
	// Empty: the directory holds no log yet. A start makes one, if none was ever reported from here.
	Empty Verdict = "no_log"
	// Unreadable: the disk answered with an error, so that nothing is known.
	Unreadable Verdict = "unreadable"
)

// Log is one log of a store.
type Log struct {
	Dir         string    `json:"dir"`
	Kind        string    `json:"kind"`
	LogID       string    `json:"log_id,omitempty"`
	Incarnation string    `json:"incarnation,omitempty"` // 16 hex digits
	Verdict     Verdict   `json:"verdict"`
	Damage      *Damage   `json:"damage,omitempty"` // of a log that refuses
	Why         string    `json:"why,omitempty"`    // the error of a log that does not open, in full
	Repaired    string    `json:"repaired,omitempty"`
	CutBytes    int64     `json:"cut_bytes"` // what the repair takes out of segments
	Base        uint64    `json:"base"`      // offset of the first record
	End         uint64    `json:"end"`       // offset of the next record
	Records     uint64    `json:"records"`   // of all kinds
	Bytes       int64     `json:"bytes"`     // of segments, as they stay
	Generation  uint64    `json:"generation"`
	Commit      uint64    `json:"commit"`
	Lost        []LostEnd `json:"lost_ends,omitempty"` // of a stream or a cache
	Mark        *Mark     `json:"mark,omitempty"`      // nil: there is none that can be used
	Segments    []Segment `json:"segments"`            // up to a damage
	Warnings    []string  `json:"warnings,omitempty"`
	// Snapshots are those of a log that a start opens or repairs, by name. None is needed to open the log.
	Snapshots []Snapshot `json:"snapshots,omitempty"`
}

// Damage is where and what, as a *segment.CorruptionError says it.
type Damage struct {
	File     string `json:"file"`
	Segment  uint64 `json:"segment"`
	Position int64  `json:"position"`
	Kind     string `json:"kind"`
	Expected uint64 `json:"expected"`
	Found    uint64 `json:"found"`
}

// Mark is durable.mark.
type Mark struct {
	Segment uint64 `json:"segment"`
	Synced  int64  `json:"synced"`
	Oldest  uint64 `json:"oldest"`
	Reset   bool   `json:"reset"`
}

// LostEnd is where a stream's log ended when it was opened, and its groups knew of more. What their two logs say of the offsets from there on is
// not believed if it stands before the offsets here; nil: whatever stands there. Of a cache: offsets from End up to Cursors may have been told of
// without being here, and are not given again.
type LostEnd struct {
	End         uint64  `json:"end"`
	Cursors     *uint64 `json:"cursors"`
	DeadLetters *uint64 `json:"dead_letters"`
}

func lostEnds(list []segment.LostEnd) (out []LostEnd) {
	known := func(o id.Offset) *uint64 {
		if o == math.MaxUint64 {
			return nil
		}
		v := uint64(o)
		return &v
	}
	for _, l := range list {
		out = append(out, LostEnd{uint64(l.End), known(l.Cursors), known(l.DeadLetters)})
	}
	return out
}

// Segment is one file of a log.
type Segment struct {
	ID      uint64 `json:"id"`
	File    string `json:"file"`
	Base    uint64 `json:"base"`
	End     uint64 `json:"end"`
	Bytes   int64  `json:"bytes"`
	Batches uint32 `json:"batches"`
	Records uint64 `json:"records"`
	Sealed  bool   `json:"sealed"`
	Index   string `json:"index"` // ok, rebuild, or unread
	// Least and greatest append time, in microseconds since the Unix epoch.
	MinMicros uint64 `json:"min_micros"`
	MaxMicros uint64 `json:"max_micros"`
}

// add plans one log and tells what the plan says.
func (r *Report) add(disk vfs.FS, p *place, o *Options) error {
	in, err := p.input(disk, p.dir)
	if err != nil {
		return err
	}
	in.Verify = o.Verify
	if o.Progress != nil {
		in.Progress = func(done, total int64) { o.Progress(p.dir, done, total) }
	}
	plan, err := segment.NewPlan(in)
	l := describe(p, plan, err, o.Verify)
	if l.Verdict == Opens || l.Verdict == Repairs {
		l.Snapshots = snapshotsOf(in, plan)
	}
	r.Logs = append(r.Logs, l)
	return nil
}

// describe turns a plan into what is shown.
func describe(p *place, plan *segment.Plan, err error, verify segment.Verify) Log {
	l := Log{
		Dir: p.dir, Kind: p.kind.String(), Incarnation: hex16(uint64(p.incarnation)), Verdict: verdict(plan, err), Repaired: plan.Repaired,
		CutBytes: plan.TruncatedBytes, Base: uint64(plan.Base), End: uint64(plan.Next), Generation: uint64(plan.Replica.Generation),
		Commit: uint64(plan.Replica.Commit), Warnings: plan.Warnings, Segments: []Segment{},
	}
	if plan.Meta != nil {
		l.LogID = plan.Meta.Log.String()
	}
	if p.kind == segment.Stream || p.kind == segment.Cache {
		l.Lost = lostEnds(plan.Replica.Lost)
	}
	if m := plan.Mark; m != nil {
		l.Mark = &Mark{m.Segment, m.Synced, m.Oldest, m.Reset}
	}
	for i := range plan.Segments {
		f := &plan.Segments[i]
		l.Segments = append(l.Segments, Segment{
			ID: f.ID, File: f.Name, Base: uint64(f.Base), End: uint64(f.End), Bytes: f.Size, Batches: f.Batches, Records: f.End.Since(f.Base), Sealed: f.Sealed,
			Index: indexVerdict(f, verify, i == len(plan.Segments)-1), MinMicros: f.MinMicros, MaxMicros: f.MaxMicros,
		})
		l.Bytes += f.Size
		l.Records += f.End.Since(f.Base)
	}
	if err != nil {
		l.Why, l.Damage = err.Error(), damageOf(err)
		if n := len(plan.Segments); n > 0 { // as far as it was followed
			l.Base, l.End = uint64(plan.Segments[0].Base), uint64(plan.Segments[n-1].End)
		}
	}
	return l
}

// refusal reports whether an error of a plan is about the log, and not about reading it.
func refusal(err error) bool {
	var damaged *segment.CorruptionError
	var version *segment.VersionError
	var missing *segment.MissingError
	return errors.As(err, &damaged) || errors.As(err, &version) || errors.As(err, &missing)
}

func verdict(plan *segment.Plan, err error) Verdict {
	switch {
	case refusal(err):
		return Refuses
	case err != nil:
		return Unreadable
	case plan.Meta == nil:
		return Empty
	case plan.Cut != nil || plan.Repaired != "":
		return Repairs
	}
	return Opens
}

// indexVerdict says what is known about the index of a segment.
func indexVerdict(f *segment.Found, verify segment.Verify, newest bool) string {
	switch {
	case f.Rebuild:
		return "rebuild"
	case verify == segment.VerifyLazy && !newest:
		return "unread"
	}
	return "ok"
}

func damageOf(err error) *Damage {
	var c *segment.CorruptionError
	if !errors.As(err, &c) {
		return nil
	}
	return &Damage{c.File, c.Segment, c.Position, c.Kind.String(), c.Expected, c.Found}
}
