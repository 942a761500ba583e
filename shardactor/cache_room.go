package shardactor

import (
	"slices"
	"sync"
)

// removedRoom is what a node has for the values that deletes of log-backed caches answer, in bytes: each is booked before it is read, or while it is
// kept for an answer, and given back with the answer. Safe for concurrent use.
//
//  1. held is the sum of what the shares hold: limit at most, or one value;
//  2. who waits, waits for more than is free, or behind who does: they get it in the order they came.
type removedRoom struct {
	limit int64

	mu      sync.Mutex
	held    int64
	waiting []*roomShare
}

// roomShare is what one shard has of it. Its methods may be called from any goroutine.
type roomShare struct {
	room    *removedRoom
	granted func() // it has got what it waited for; called from any goroutine

	held  int64 // of these the room's mu
	wants int64 // 0 unless it waits
	ended bool
}

func (r *removedRoom) fits(n, limit int64) bool { return r.held+n <= limit || r.held == 0 }

func (r *removedRoom) book(s *roomShare, n int64) {
	r.held += n
	s.held += n
}

// keep books a value that is at hand. Such values wait for a sync, so that they have half of the room only: what is read leaves again as soon as
// it is.
func (s *roomShare) keep(n int64) bool { return s.try(n, s.room.limit/2) }

// more books a value beside those that the share was given room for.
func (s *roomShare) more(n int64) bool { return s.try(n, s.room.limit) }

func (s *roomShare) try(n, limit int64) bool {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.ended || len(r.waiting) > 0 || !r.fits(n, limit) {
		return false
	}
	r.book(s, n)
	return true
}

// take books a value now, or else when there is room, and granted is called then. A share waits for one value at a time.
func (s *roomShare) take(n int64) bool {
	if s.more(n) {
		return true
	}
	r := s.room
	r.mu.Lock()
	if s.ended || s.wants != 0 {
		r.mu.Unlock()
		return false
	}
	s.wants = max(n, 1)
	r.waiting = append(r.waiting, s)
	r.serve() // some may have been given back since
	return false
}

// give gives back what was booked. One that was ended has given it back.
func (s *roomShare) give(n int64) {
	r := s.room
	r.mu.Lock()
	n = min(n, s.held)
	r.book(s, -n)
	r.serve()
}

// end gives back all: the shard is over.
func (s *roomShare) end() {
	r := s.room
	r.mu.Lock()
	s.ended = true
	r.book(s, -s.held)
	r.waiting = slices.DeleteFunc(r.waiting, func(x *roomShare) bool { return x == s })
	r.serve()
}

// serve gives room to who has waited longest, and unlocks.
func (r *removedRoom) serve() {
	var list []*roomShare
	for len(r.waiting) > 0 && r.fits(r.waiting[0].wants, r.limit) {
		s := r.waiting[0]
		r.book(s, s.wants)
		s.wants = 0
		r.waiting = slices.Delete(r.waiting, 0, 1)
		list = append(list, s)
	}
	r.mu.Unlock()
	for _, s := range list {
		s.granted()
	}
}
