package inspect

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/felixd/felixd/storage/segment"
)

// carryOut does what a plan says, each step durable before the next. First the mark goes back behind all that is taken away: a
// repair that is interrupted leaves a damaged log, which refuses as before, and never one that seems whole.
func (r *repair) carryOut(plan *segment.Plan, entries []segment.Entry) error {
	salt := segment.SaltOf(plan.Meta.Log)
	m := marked(plan)
	final := *m
	m.Synced = segment.HeaderSize
	if err := r.disk.SyncDir(r.place.dir); err != nil {
		return err
	}
	if err := r.mark(salt, m); err != nil {
		return err
	}
	for _, e := range entries {
		if derived(e.Name) && e.Regular { // of the log as it was; all of them are built anew
			if err := r.remove(e.Name); err != nil {
				return err
			}
		}
	}
	for _, name := range plan.Delete {
		if err := r.remove(name); err != nil {
			return err
		}
	}
	if err := r.settle(plan); err != nil {
		return err
	}
	if c := plan.Create; c != nil {
		if err := r.segment(c); err != nil {
			return err
		}
	}
	return r.mark(salt, &final)
}

// derived reports whether a file tells nothing that segments don't.
func derived(name string) bool {
	_, isIndex := segment.ParseIndexName(name)
	return isIndex || strings.HasSuffix(name, segment.SnapshotName(""))
}

// marked is the mark of the log as the plan leaves it.
func marked(plan *segment.Plan) *segment.Mark {
	m := &segment.Mark{}
	if n := len(plan.Segments); n > 0 {
		last := &plan.Segments[n-1]
		*m = segment.Mark{Segment: last.ID, Synced: last.Size, Oldest: plan.Segments[0].ID, Base: last.Base}
	}
	if c := plan.Create; c != nil {
		if len(plan.Segments) == 0 {
			m.Oldest = c.ID
		}
		m.Segment, m.Synced, m.Base = c.ID, segment.HeaderSize, c.Base
	}
	return m
}

// settle cuts the newest segment, and makes sure that what stays of it is on the device.
func (r *repair) settle(plan *segment.Plan) error {
	n := len(plan.Segments)
	if n == 0 {
		return nil
	}
	f, err := r.disk.Open(r.path(plan.Segments[n-1].Name), true)
	if err != nil {
		return err
	}
	if plan.Cut != nil {
		err = f.Truncate(plan.Cut.Size)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// remove takes a file away, durably. One that is gone already is fine.
func (r *repair) remove(name string) error {
	if err := r.disk.Remove(r.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.disk.SyncDir(r.place.dir)
}

// segment makes an empty segment, durably.
func (r *repair) segment(h *segment.Header) error {
	h.CreatedMicros = r.o.NowMicros
	if err := r.put(r.path(segment.FileName(h.ID)), segment.AppendHeader(nil, h)); err != nil {
		return err
	}
	return r.disk.SyncDir(r.place.dir)
}

// mark replaces durable.mark, durably.
func (r *repair) mark(salt segment.Salt, m *segment.Mark) error {
	return r.small(segment.MarkName, segment.AppendMark(nil, salt, m))
}

// small replaces a small file: the old one or the new one is there at any moment.
func (r *repair) small(name string, b []byte) error {
	temp := r.path(name + segment.TempSuffix)
	if err := r.disk.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := r.put(temp, b); err != nil {
		return err
	}
	if err := r.disk.Rename(temp, r.path(name)); err != nil {
		return err
	}
	return r.disk.SyncDir(path.Clean(r.place.dir))
}
