package segment

import "github.com/felixd/felixd/wire/id"

// scanner is one walk over the batches of a segment.
type scanner struct {
	w     *window
	salt  Salt
	h     *Header
	whole bool // the walk began at the beginning
	fn    func(position int64, b *BatchHeader) error
	out   Scanned

	// The sum of the bytes before one position, if a batch begins or ends there.
	watch   int64
	watched uint32
	passed  bool
}

// walk goes on until the end or the first failure, and leaves what it found in out.
func (s *scanner) walk(out *Scanned) error {
	s.look(out)
	for !out.Sealed && out.End < s.w.size {
		err := s.step(out)
		s.look(out)
		if err != nil {
			return at(err, "", FileName(s.h.ID), s.h.ID, 0)
		}
	}
	return nil
}

// look notes the sum of the bytes before the position that is watched.
func (s *scanner) look(out *Scanned) {
	switch {
	case s.passed || out.Size() != s.watch:
	case out.Sealed:
		s.watched, s.passed = Extend(out.FileSum, AppendFooter(nil, s.salt, &out.Footer)), true
	default:
		s.watched, s.passed = out.FileSum, true
	}
}

// step takes the batch or footer at out.End.
func (s *scanner) step(out *Scanned) error {
	position := out.End
	head, err := s.w.bytes(position, BatchHeaderSize)
	if err != nil {
		return err
	}
	if len(head) >= 4 && be.Uint32(head) == footerMagic {
		return s.footer(out, head)
	}
	b, err := DecodeBatchHeader(head, s.salt)
	if err != nil {
		return at(err, "", "", 0, position)
	}
	if need, have := b.Size(), s.w.size-position; need > have {
		return &CorruptionError{Kind: Truncated, Position: position, Expected: uint64(need), Found: uint64(have)}
	}
	sum, err := s.body(&b, position, out.FileSum)
	if err != nil {
		return err
	}
	if b.Base != out.Next {
		return &CorruptionError{Kind: OffsetOutOfOrder, Position: position, Expected: uint64(out.Next), Found: uint64(b.Base)}
	}
	if s.fn != nil {
		if err := s.fn(position, &b); err != nil {
			return err
		}
	}
	out.take(&b, sum)
	return nil
}

// take counts a whole batch.
func (s *Scanned) take(b *BatchHeader, fileSum uint32) {
	if s.Batches == 0 || b.AppendMicros < s.MinMicros {
		s.MinMicros = b.AppendMicros
	}
	s.MaxMicros = max(s.MaxMicros, b.AppendMicros)
	s.Batches++
	s.End += b.Size()
	s.Next = b.End()
	s.FileSum = fileSum
}

// body checks publisher and body of a batch that is there whole, and continues the file's checksum over the batch.
func (s *scanner) body(b *BatchHeader, position int64, fileSum uint32) (uint32, error) {
	var stored, raw uint32
	skip := int(b.PublisherLength) // what is left of the publisher, which the body's checksum does not cover
	start := position + BatchHeaderSize
	fileSum, err := s.w.sum(fileSum, position, start)
	if err != nil {
		return 0, err
	}
	err = s.w.each(start, position+b.Size(), func(p []byte) {
		fileSum, stored = Extend(fileSum, p), Extend(stored, p)
		if b.PublisherLength > 0 && !b.Compressed {
			past := min(skip, len(p))
			skip -= past
			raw = Extend(raw, p[past:])
		}
	})
	switch {
	case err != nil:
		return 0, err
	case stored != b.StoredSum:
		return 0, &CorruptionError{Kind: BatchChecksum, Position: position, Expected: uint64(s.salt.Apply(b.StoredSum)), Found: uint64(s.salt.Apply(stored))}
	case b.PublisherLength > 0 && !b.Compressed && raw != b.RawSum:
		return 0, &CorruptionError{Kind: BodyChecksum, Position: position, Expected: uint64(s.salt.Apply(b.RawSum)), Found: uint64(s.salt.Apply(raw))}
	}
	return fileSum, nil
}

// footer checks the footer at out.End against all that came before it.
func (s *scanner) footer(out *Scanned, head []byte) error {
	position := out.End
	f, err := DecodeFooter(head[:min(len(head), FooterSize)], s.salt)
	if err != nil {
		return at(err, "", "", 0, position)
	}
	if err := f.fits(s.h, position, out.Next); err != nil {
		return at(err, "", "", 0, position)
	}
	if s.whole {
		if err := f.counts(out); err != nil {
			return at(err, "", "", 0, position)
		}
	}
	out.Sealed, out.Footer = true, f
	if rest := s.w.size - position; rest > FooterSize {
		return &CorruptionError{Kind: BytesAfterFooter, Position: position + FooterSize, Expected: FooterSize, Found: uint64(rest)}
	}
	return nil
}

// fits checks what a footer says about its own place: the segment's id, how long it is, and where it ends.
func (f *Footer) fits(h *Header, length int64, end id.Offset) error {
	wrong := func(want, found uint64, why string) error {
		return &CorruptionError{Kind: FooterFields, Expected: want, Found: found, Why: why}
	}
	switch {
	case f.ID != h.ID:
		return wrong(h.ID, f.ID, "it is the footer of another segment")
	case f.Length != length:
		return wrong(uint64(f.Length), uint64(length), "the segment has another length than its footer says")
	case f.End != end:
		return wrong(uint64(f.End), uint64(end), "the segment ends at another offset than its footer says")
	}
	return nil
}

// counts checks what a footer says about all that is before it.
func (f *Footer) counts(s *Scanned) error {
	switch {
	case f.FileSum != s.FileSum:
		return &CorruptionError{Kind: FileChecksum, Expected: uint64(f.FileSum), Found: uint64(s.FileSum)}
	case f.Batches != s.Batches:
		return &CorruptionError{Kind: FooterFields, Expected: uint64(f.Batches), Found: uint64(s.Batches), Why: "the segment has another number of batches than its footer says"}
	case f.MinMicros != s.MinMicros || f.MaxMicros != s.MaxMicros:
		return &CorruptionError{Kind: FooterFields, Why: "the segment has other append times than its footer says"}
	}
	return nil
}
