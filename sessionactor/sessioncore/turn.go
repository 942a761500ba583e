package sessioncore

// Turn says how a request stands whose outcome is still open: first, when its answer would leave at once because it waits for no older
// one; gone, when nobody will read an answer, or it has got one. A request that is first stays so until its outcome.
func (s *Stream) Turn(t Token) (first, gone bool) {
	sl := s.open.get(t)
	if s.gone || sl == nil || sl.settled {
		return false, true
	}
	return t == s.open.first, false
}

// Gone reports whether nobody reads the answers of the stream any more.
func (s *Stream) Gone() bool { return s.gone }
