package shardactor

import (
	"errors"

	"github.com/felixd/felixd/actors"
)

// startJanitor brings the janitor up, if there is a disk to look after.
func (h *Host) startJanitor(t *actors.Turn) {
	d := h.opts.Disks
	if d == nil || d.opts.RetentionInterval <= 0 {
		return
	}
	ref, err := actors.Spawn[janitorMessage](t, actors.Spec[janitorMessage]{
		Name: janitorName, Kind: "janitor",
		New:    func() actors.Actor { return &Janitor{disks: d, metrics: h.opts.Metrics.Disk} },
		Bounds: actors.Bounds{ControlItems: janitorRuns + 1}, // one for each job it may have under way, and one for the sweep
	})
	if errors.Is(err, actors.ErrStopped) { // the host is being stopped
		return
	}
	if err != nil {
		panic("shardactor: spawn janitor: " + err.Error())
	}
	h.janitor, h.cleaning = ref, true
}

func (h *Host) stopJanitor() {
	if h.cleaning {
		h.janitor.Stop()
	}
}

// janitorEnded brings up a new one after a failure. What the failed one had under way stays busy and is not looked after again: it may
// have been the reason.
func (h *Host) janitorEnded(t *actors.Turn, x actors.Terminated) {
	h.cleaning = false
	if x.Reason == actors.Panicked && h.draining == nil {
		h.startJanitor(t)
	}
}
