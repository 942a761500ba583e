package shardactor

import (
	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage"
)

// closeFiles begins to close the files of a shard that has terminated.
func (h *Host) closeFiles(s *hosted) {
	reason := storage.ClosedFailed
	switch {
	case s.of == nil:
		reason = storage.ClosedDeleted
	case h.draining != nil:
		reason = storage.ClosedShutdown
	}
	f := s.files
	f.closeReaders(reason)
	h.closing++
	f.end(s.life.Unused(), func(err error) {
		h.opts.Disks.ended()
		f.say(report{what: filesClosed, err: err})
	})
}

// setAside begins to take closed files out of the way.
func (h *Host) setAside(s *hosted) {
	h.closing++
	f := s.files
	h.opts.Disks.begin()
	f.setAside(func(err error) {
		h.opts.Disks.ended()
		f.say(report{what: filesAside, err: err})
	})
}

// free lets go of a place; whoever waits for it has it now.
func (h *Host) free(t *actors.Turn, s *hosted) {
	next := s.next
	if h.places[s.place] == s {
		delete(h.places, s.place)
	}
	s.files, s.next = nil, nil
	if next != nil && next.of != nil && h.draining == nil {
		h.start(t, next)
	}
}

// reported takes what a durable shard or its files have to tell.
func (h *Host) reported(t *actors.Turn, x report) {
	s := x.of
	switch x.what {
	case filesClosed, filesAside:
		h.filesEnded(t, x)
		return
	}
	if x.shard != s.number || s.of == nil || !s.life.Running() {
		return // of an incarnation that is over
	}
	h.settled(s)
	h.change(s.of)
	switch x.what {
	case shardServes:
		handle := x.handle
		handle.Number, handle.Ref, handle.Durable, handle.right = s.number, s.ref, true, s.right
		s.handle = &handle
		if s.logID != x.id {
			s.logID = x.id
			if told := h.opts.Disks.opts.LogOpened; told != nil {
				told(s.of.assignment.Name, s.of.assignment.Incarnation, s.index, x.id)
			}
		}
	case shardPoisoned:
		s.handle, s.reason = nil, ReasonPoisoned
		h.opts.Events.Emit(shardPoisonedSeen{shard: s.number, name: s.files.label(), err: x.err})
	case shardDamaged:
		s.handle, s.reason = nil, ReasonDamaged
		o := h.opts.Disks.opts
		h.opts.Events.Emit(shardDamagedSeen{shard: s.number, name: s.files.label(), err: x.err, quarantined: o.Quarantine})
		if !o.Quarantine && o.OnDamaged != nil {
			o.OnDamaged(x.err)
		}
	}
}

// filesEnded goes on with what waited for the files.
func (h *Host) filesEnded(t *actors.Turn, x report) {
	s := x.of
	h.closing--
	if x.err != nil {
		h.opts.Events.Emit(filesFailed{shard: x.shard, name: s.files.label(), aside: x.what == filesAside, err: x.err})
	}
	h.then(t, s, s.life.FilesEnded(x.what == filesAside, h.draining != nil))
}
