package shardactor

import (
	"fmt"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/hosting"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// remove stops a resource that is not wanted any more. What readers look at is closed when its shards have terminated, since a
// shard may be in the middle of a turn, and what it answers there is to be readable. The children are forgotten then too. aside has
// the files of its logs taken out of the way, also if they still belong to a shard before that was to leave them to this one.
func (h *Host) remove(t *actors.Turn, r *resource, aside bool) route.Name {
	for _, s := range r.shards {
		s.of = nil
		h.settled(s)
		then, quarantined := s.life.Remove(aside)
		if quarantined {
			h.endQuarantine()
		}
		if before := h.places[s.place]; aside && before != nil && before != s {
			before.life.Unwanted()
		}
		h.then(t, s, then)
	}
	return r.assignment.Name
}

// then does what is to be done about a shard now.
func (h *Host) then(t *actors.Turn, s *hosted, then hosting.Then) {
	switch then {
	case hosting.Nothing:
	case hosting.Start:
		h.start(t, s)
	case hosting.Stop:
		s.right.giveUp()
		s.ref.Stop()
	case hosting.Close:
		h.closeFiles(s)
	case hosting.Aside:
		h.setAside(s)
	case hosting.Free:
		h.free(t, s)
	default:
		panic("shardactor: a host is to do what nobody knows")
	}
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
	then, failed := s.life.Terminated(x.Reason == actors.Panicked, h.draining != nil)
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
	h.then(t, s, then)
	if failed {
		h.failed(t, s, x)
	}
}

// end closes what readers look at.
func (s *hosted) end(reason storage.CloseReason) {
	s.handle, s.reason = nil, wire.ReasonNotReady
	s.right.giveUp()
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
	then, at, quarantined := s.life.Failed(now)
	if quarantined {
		h.retries++
		h.settled(s)
	}
	h.then(t, s, then)
	h.report(s, shardFailed{shard: number, panic: panicText(x.Panic), quarantined: quarantined, retryIn: at.Sub(now)})
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
