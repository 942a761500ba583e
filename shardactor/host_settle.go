package shardactor

import "time"

// settling is a version of what is desired whose shards are being opened.
type settling struct {
	version uint64
	shards  int // of them, those that are not open and were not refused
	until   time.Time
}

// settleMax is how long a version of what is desired may wait for its logs before it is told as applied: creating a stream and writing to
// it at once works, and a log that takes an hour to check holds up no other stream.
const settleMax = 5 * time.Second

// awaited has a shard waited for.
func (h *Host) awaited(s *hosted, v *settling) {
	s.settles = v
	v.shards++
	if h.first {
		s.unready = true
		h.unready++
	}
}

// settled says that there is nothing more to wait for: the shard is open, or refused for good.
func (h *Host) settled(s *hosted) {
	if s.settles != nil {
		s.settles.shards--
		s.settles = nil
	}
	if s.unready {
		s.unready = false
		h.unready--
	}
}

// settle tells of the versions that are applied, in their order, and that the node is ready.
func (h *Host) settle(now time.Time) {
	for len(h.settling) > 0 {
		v := h.settling[0]
		if v.shards > 0 && now.Before(v.until) {
			break
		}
		h.settling = h.settling[1:]
		if h.opts.Applied != nil {
			h.opts.Applied(v.version)
		}
	}
	if d := h.opts.Disks; d != nil && !h.first && h.unready == 0 && !h.ready {
		h.ready = true
		if d.opts.Ready != nil {
			d.opts.Ready()
		}
	}
}
