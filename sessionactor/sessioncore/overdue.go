package sessioncore

import (
	"slices"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// overdue is a request that was answered before its outcome was known. It holds what it held until the outcome comes. The window counts
// them with the open ones, so there are never more.
type overdue struct {
	token    Token
	bytes    int
	admitted bool
	shard    id.ShardID
}

// Logged notes that an open request is a write to a log that lasts: its answer names the offset.
func (s *Stream) Logged(t Token) { s.open.get(t).logged = true }

// IsLogged reports whether Logged was called for an open request.
func (s *Stream) IsLogged(t Token) bool {
	sl := s.open.get(t)
	return sl != nil && sl.logged
}

// Due sets when Expire answers an open request: a positive instant of a clock that the caller chooses.
func (s *Stream) Due(t Token, at int64) {
	if sl := s.open.get(t); sl != nil && !sl.settled {
		sl.due = at
	}
}

// Expire answers with f what was due at that instant or before and has no outcome. It keeps its permits until Outlived tells of the
// outcome. next is when the next one is due, 0 when none is.
func (s *Stream) Expire(now int64, f *wire.Refusal) (expired int, next int64) {
	var late []Token
	for i := range s.open.count {
		sl := s.open.at(i)
		switch {
		case sl.settled || sl.due == 0:
		case sl.due <= now:
			late = append(late, s.open.first+Token(i))
		case next == 0 || sl.due < next:
			next = sl.due
		}
	}
	for _, t := range late {
		sl := s.open.get(t)
		s.overdue = append(s.overdue, overdue{token: t, bytes: sl.bytes, admitted: sl.admitted, shard: sl.shard})
		s.respond(t, sl, Answer{Refusal: f})
	}
	return len(late), next
}

// Outlived takes the outcome of a request that Expire has answered, which nobody is told. It returns false when t is none.
func (s *Stream) Outlived(t Token) bool {
	i := slices.IndexFunc(s.overdue, func(o overdue) bool { return o.token == t })
	if i < 0 {
		return false
	}
	o := s.overdue[i]
	s.held -= o.bytes
	s.released += o.bytes
	if o.admitted {
		s.noteOutcome(o.shard, o.bytes)
	}
	if s.overdue = slices.Delete(s.overdue, i, i+1); len(s.overdue) == 0 {
		s.overdue = nil
	}
	return true
}
