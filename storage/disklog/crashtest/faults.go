package crashtest

import (
	"errors"
	"fmt"
	"path"
	"syscall"

	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// wait is what a seq means that was not answered yet.
type wait struct {
	append bool
	then   func() // it is done
	undo   func() // it was refused; may be nil
}

// spoil makes one of the next calls of the disk fail, now and then.
func (c *campaign) spoil() {
	if !c.o.Faults || c.rng.IntN(2) > 0 {
		return
	}
	calls := []vfs.Call{vfs.CallWrite, vfs.CallWrite, vfs.CallWrite, vfs.CallTruncate, vfs.CallCreate, vfs.CallRename, vfs.CallRemove, vfs.CallSync,
		vfs.CallSyncDir, vfs.CallOpen}
	errs := []error{syscall.ENOSPC, syscall.EIO, syscall.EDQUOT}
	// A write of 48 bytes at the beginning of a file is done or not; half of it is what only a larger one leaves.
	short := c.rng.IntN(2) == 0
	r := vfs.Rule{
		Match: func(name string) bool { return !short || path.Base(name) != segment.MarkName },
		Calls: []vfs.Call{calls[c.rng.IntN(len(calls))]}, From: 1 + c.rng.IntN(3), Times: 1 + c.rng.IntN(2), Err: errs[c.rng.IntN(len(errs))],
		Short: short,
	}
	c.fault.Add(r)
}

// number draws a seq.
func (c *campaign) number(w wait) uint64 {
	c.seq++
	c.waits[c.seq] = w
	return c.seq
}

// Persisted implements disklog.Notify.
func (c *campaign) Persisted(seq uint64) {
	if seq < c.next {
		c.fail(fmt.Errorf("seq %d was reported after %d", seq, c.next-1))
	}
	for ; c.next <= seq; c.next++ {
		if w, ok := c.waits[c.next]; ok {
			w.then()
			delete(c.waits, c.next)
		}
	}
}

// WriteFailed implements disklog.Notify.
func (c *campaign) WriteFailed(seq uint64, err error) {
	if !c.o.Faults {
		c.fail(fmt.Errorf("seq %d failed: %w", seq, err))
		return
	}
	c.refusal(seq, err)
	if w := c.waits[seq]; w.undo != nil && !(c.broken && c.model.reset != nil) {
		w.undo()
	}
	c.refused(seq)
	for s := seq + 1; s <= c.seq; s++ {
		if c.waits[s].append {
			delete(c.waits, s)
		}
	}
}

// SealFailed implements disklog.Notify. What is queued behind the seal keeps its wait: it is to be answered.
func (c *campaign) SealFailed(seq uint64, err error) {
	if !c.o.Faults {
		c.fail(fmt.Errorf("seal %d failed: %w", seq, err))
		return
	}
	c.refusal(seq, err)
	c.refused(seq)
}

// refusal counts a refusal, which must not come behind what was reported.
func (c *campaign) refusal(seq uint64, err error) {
	c.result.Refused++
	if seq < c.next {
		c.fail(fmt.Errorf("seq %d was refused after %d was reported", seq, c.next-1))
	}
	var stuck *disklog.StuckError
	c.broken = c.broken || errors.As(err, &stuck)
}

// refused passes over a refused one, before which everything must have been answered.
func (c *campaign) refused(seq uint64) {
	for ; c.next < seq; c.next++ { // what was dropped behind a refusal before has no wait any more
		if _, unanswered := c.waits[c.next]; unanswered {
			c.fail(fmt.Errorf("seq %d was refused before %d was answered", seq, c.next))
		}
	}
	c.next = seq + 1
	delete(c.waits, seq)
}

// Poisoned implements disklog.Notify.
func (c *campaign) Poisoned(err error) {
	if !c.o.Faults {
		c.fail(err)
	}
	c.result.Poisoned++
	c.broken = true
}

// Stalled implements disklog.Notify.
func (c *campaign) Stalled() {}

// Back implements disklog.Notify.
func (c *campaign) Back() {}
