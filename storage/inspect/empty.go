package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// NoLogIDError says that an empty log needs an id, and nobody told it.
type NoLogIDError struct{ Dir string }

func (e *NoLogIDError) Error() string {
	return "the directory " + e.Dir + " does not say which log it held: give the id that the start names after log_missing"
}

// empty sets the whole directory aside and makes an empty log in its place.
func (r *repair) empty() error {
	meta, base, there, err := r.remains()
	if err != nil {
		return err
	}
	if meta == nil {
		return nil // a start opens it; there is nothing to decide
	}
	base = max(base, r.o.Base)
	if r.place.kind == segment.Cache { // clients hold versions of the lost one: it begins where a new one does, see disklog.Spec
		base = max(base, id.Offset(r.o.NowMicros))
	}
	r.out.Base, r.out.End = uint64(base), uint64(base)
	if there {
		r.step("set %s aside, whole", r.place.dir)
	}
	r.step("make an empty log %s that begins at offset %d", meta.Log, base)
	if !r.o.Yes {
		return nil
	}
	if there {
		if err := r.setAside(); err != nil {
			return err
		}
	}
	if err := r.begin(meta, base); err != nil {
		return err
	}
	r.out.Done = true
	return r.prove()
}

// remains looks at what is there: for the id of the log, and for the greatest offset that can still be seen. Without a meta, the log is
// there and a start would open it.
func (r *repair) remains() (*segment.Meta, id.Offset, bool, error) {
	meta := &segment.Meta{
		Log: r.o.Log, Incarnation: r.place.incarnation, Generation: r.o.Generation, NameHash: segment.NameHash(r.place.keyHash, r.place.kind), Kind: r.place.kind,
		CreatedMicros: r.o.NowMicros,
	}
	_, err := r.disk.Stat(r.place.dir)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, false, err
	}
	in, err := r.place.input(r.disk, r.place.dir)
	if err != nil {
		return nil, 0, false, err
	}
	plan, err := segment.NewPlan(in) // whatever it can see: a refusal is why somebody is here
	if err != nil && !refusal(err) {
		return nil, 0, false, err // not known to be damaged: nothing is given up for an error of reading
	}
	if meta.Log.IsZero() && plan.Meta != nil {
		meta.Log = plan.Meta.Log
	}
	if meta.Log.IsZero() {
		return nil, 0, false, &NoLogIDError{Dir: r.place.dir}
	}
	in.Log = meta.Log // as a start would know it
	switch whole, err := segment.NewPlan(in); {
	case err == nil && whole.Meta != nil:
		r.out.Base, r.out.End = uint64(whole.Base), uint64(whole.Next)
		return nil, 0, true, nil
	case err != nil && !refusal(err):
		return nil, 0, false, err
	}
	base, err := r.earlier()
	return meta, max(base, r.ends(plan)), there, err
}

// ends is the greatest offset that a plan knows of, and of a cache's log what was told of beyond.
func (r *repair) ends(plan *segment.Plan) id.Offset {
	base := plan.Next
	if plan.Mark != nil {
		base = max(base, plan.Mark.Base)
	}
	for _, f := range plan.Segments {
		base = max(base, f.End)
	}
	if r.place.kind == segment.Cache {
		for _, x := range plan.Replica.Lost {
			base = max(base, x.Cursors.Add(1))
		}
	}
	return base
}

// earlier is the greatest offset that can be seen in what was set aside of this log before, by a repair that was interrupted.
func (r *repair) earlier() (id.Offset, error) {
	var base id.Offset
	parent := r.parent()
	tries, err := list(r.disk, parent)
	if err != nil {
		return 0, err
	}
	for _, try := range tries {
		in, err := r.place.input(r.disk, path.Join(parent, try.Name, asideName))
		if err != nil {
			return 0, err
		}
		plan, err := segment.NewPlan(in) // whatever it can see
		if err != nil && !refusal(err) {
			return 0, err
		}
		base = max(base, r.ends(plan))
	}
	return base, nil
}

// asideName is what a whole directory is called where it was set aside.
const asideName = "log"

// setAside moves the directory below salvaged/.
func (r *repair) setAside() error {
	dir, err := r.aside()
	if err != nil {
		return err
	}
	to := path.Join(dir, asideName)
	if err := r.disk.Rename(r.place.dir, to); err != nil {
		return fmt.Errorf("set %s aside: %w", r.place.dir, err)
	}
	r.out.Salvaged = to
	if err := r.disk.SyncDir(dir); err != nil {
		return err
	}
	return r.disk.SyncDir(path.Dir(r.place.dir))
}

// begin makes the directory of an empty log: log.meta, the first segment, the mark, in this order.
func (r *repair) begin(meta *segment.Meta, base id.Offset) error {
	if root := path.Dir(r.place.dir); root != "." {
		if err := r.mkdir(root); err != nil {
			return err
		}
	}
	if err := r.mkdir(r.place.dir); err != nil {
		return err
	}
	if err := r.small(segment.MetaName, segment.AppendMeta(nil, meta)); err != nil {
		return err
	}
	h := segment.Header{Log: meta.Log, NameHash: meta.NameHash, Base: base}
	if err := r.segment(&h); err != nil {
		return err
	}
	return r.mark(segment.SaltOf(meta.Log), &segment.Mark{Synced: segment.HeaderSize, Base: base})
}
