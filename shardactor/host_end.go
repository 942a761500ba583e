package shardactor

import (
	"fmt"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// remove stops a resource that is not wanted any more. What readers look at is closed when its shards have terminated, since a
// shard may be in the middle of a turn, and what it answers there is to be readable. The children are forgotten then too. aside has
// the files of its logs taken out of the way.
func (h *Host) remove(r *resource, aside bool) route.Name {
	for _, s := range r.shards {
		s.of, s.aside = nil, aside
		h.settled(s)
		switch {
		case s.running:
			s.right.serving.Store(false)
			s.ref.Stop()
		case !s.retryAt.IsZero():
			h.endQuarantine(s)
		}
		if !s.running && s.files != nil && !s.closing {
			h.left(s)
		}
	}
	return r.assignment.Name
}

// terminated takes the end of a shard.
func (h *Host) terminated(t *actors.Turn, x actors.Terminated) {
	if x.Name == janitorName {
		h.janitorEnded(t, x)
		return
	}
	s := h.children[x.Name]
	delete(h.children, x.Name)
	if s == nil {
		return
	}
	failed := h.draining == nil && s.of != nil && x.Reason == actors.Panicked
	switch {
	case s.of == nil:
		s.end(storage.ClosedDeleted)
	case failed:
		s.end(storage.ClosedFailed)
	default:
		s.end(storage.ClosedShutdown)
	}
	if s.of != nil {
		h.change(s.of)
	}
	if s.files != nil {
		h.closeFiles(s)
	}
	if failed {
		h.failed(t, s, x)
	}
}

// end closes what readers look at.
func (s *hosted) end(reason storage.CloseReason) {
	s.running, s.handle, s.reason = false, nil, wire.ReasonNotReady
	s.right.serving.Store(false)
	if s.memory != nil {
		s.memory.Close(reason)
	}
	if s.cache != nil {
		s.cache.Close()
	}
	s.memory, s.cache = nil, nil
}

// failed decides when a shard that panicked comes up again.
func (h *Host) failed(t *actors.Turn, s *hosted, x actors.Terminated) {
	number, now := s.number, t.Now()
	at, quarantined := s.restarts.failed(now)
	if quarantined {
		s.retryAt = at
		h.retries++
		h.settled(s)
	} else {
		h.startAgain(t, s)
	}
	h.report(s, shardFailed{shard: number, panic: panicText(x.Panic), quarantined: quarantined, retryIn: at.Sub(now)})
}

// startAgain brings up a shard, after its files were closed.
func (h *Host) startAgain(t *actors.Turn, s *hosted) {
	if s.closing {
		s.again = true
		return
	}
	h.start(t, s)
}

// report counts a failure and says what became of the shard.
func (h *Host) report(s *hosted, e shardFailed) {
	e.name = fmt.Sprintf("%s/%d", s.of.assignment.Name, s.index)
	if !h.durable(s.of) {
		h.opts.Metrics.Lost.Inc()
	}
	if e.quarantined {
		h.opts.Metrics.Quarantined.Inc()
	} else {
		h.opts.Metrics.Restarts.Inc()
	}
	h.opts.Events.Emit(e)
}

func panicText(p *actors.PanicInfo) string {
	if p == nil {
		return "unknown"
	}
	return p.Error()
}
