package segment

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// scene is a log of two sealed segments and an active one (2), with three batches that were synced and acknowledged.
type scene struct {
	*writer
	disk *vfs.Mem
	at   [3]int64 // where the three batches begin
}

func newScene(t testing.TB) *scene {
	disk := vfs.NewMem()
	s := &scene{writer: newWriter(t, disk, 1), disk: disk}
	s.create(5)
	for range 2 {
		for range 4 {
			s.append(1500)
		}
		s.roll()
	}
	for i := range s.at {
		s.at[i] = s.got.End
		s.append(1500)
	}
	s.commit()
	return s
}

// edit changes a file.
func (s *scene) edit(name string, change func(b []byte) []byte) {
	store(s.t, s.disk, name, change(load(s.t, s.disk, name)))
}

// active is the name of the newest segment.
func (s *scene) active() string { return FileName(2) }

// flip turns one bit of the newest segment.
func (s *scene) flip(position int64) {
	s.edit(s.active(), func(b []byte) []byte { b[position] ^= 0x10; return b })
}

// forge rewrites the header of the last batch, with checksums that fit.
func (s *scene) forge(change func(head []byte)) {
	s.edit(s.active(), func(b []byte) []byte {
		head := b[s.at[2]:][:BatchHeaderSize]
		change(head)
		be.PutUint32(head[4:], s.salt.over(head[8:]))
		return b
	})
}

func (s *scene) markBack(segmentID uint64, synced int64) {
	m := Mark{Segment: segmentID, Synced: synced, Base: s.baseOf(segmentID)}
	store(s.t, s.disk, MarkName, AppendMark(nil, s.salt, &m))
}

func (s *scene) noMark() { vanish(s.t, nil, s.disk, MarkName, nil, nil) }

// row is one line of the matrix: what happens, what the plan says, and what it says when an operator allows RepairTail.
type row struct {
	name   string
	change func(s *scene)
	kind   Kind                 // 0: the log opens
	forced Kind                 // with RepairTail, where kind is not 0
	cut    func(s *scene) int64 // size of the newest segment afterwards, where a log opens; nil: as it is
}

func last(s *scene) int64 { return s.at[2] }
func end(s *scene) int64  { return s.got.End }

// unsynced appends a batch that nobody was promised and leaves n bytes of it.
func unsynced(n int64) func(s *scene) {
	return func(s *scene) {
		from := s.got.End
		s.append(1500)
		s.edit(s.active(), func(b []byte) []byte { return b[:from+n] })
		s.got.End = from
	}
}

func appended(more []byte) func(s *scene) {
	return func(s *scene) { s.edit(s.active(), func(b []byte) []byte { return append(b, more...) }) }
}

// zeroFrom zeroes the newest segment from a position to its end.
func zeroFrom(position func(s *scene) int64) func(s *scene) {
	return func(s *scene) {
		p := position(s)
		s.edit(s.active(), func(b []byte) []byte {
			b[p-1] = 1 // so that the zeros begin here
			clear(b[p:])
			return b
		})
	}
}

func aligned(s *scene) int64 { return (s.at[2]/sector + 2) * sector }

func both(f ...func(s *scene)) func(s *scene) {
	return func(s *scene) {
		for _, g := range f {
			g(s)
		}
	}
}

func matrixA() []row {
	noMark := (*scene).noMark
	lastUnmarked := func(s *scene) { s.markBack(2, s.at[2]) }
	zerosThenByte := append(make([]byte, 1000), 1)
	return []row{
		{"A2 file ends inside the header of the last batch", unsynced(40), 0, 0, end},
		{"A3 file ends inside the body", unsynced(700), 0, 0, end},
		{"A3 without a mark", both(unsynced(700), noMark), 0, 0, end},
		{"A5 a torn batch is cut whole", unsynced(BatchHeaderSize + 1), 0, 0, end},
		{"A6 file ends between two batches", unsynced(0), 0, 0, nil},
		{"A7 a bit of the length of the last batch", func(s *scene) { s.flip(s.at[2] + 8) }, BatchHeaderChecksum, 0, last},
		{"A7 without a mark", both(func(s *scene) { s.flip(s.at[2] + 8) }, noMark), BatchHeaderChecksum, 0, last},
		{"A8 a bit of the body of the last batch", func(s *scene) { s.flip(s.at[2] + 200) }, BatchChecksum, 0, last},
		{"A9 the same past the mark", both(func(s *scene) { s.flip(s.at[2] + 200) }, lastUnmarked), 0, 0, last},
		{"A10 a bit in the middle, batches follow", func(s *scene) { s.flip(s.at[1] + 200) }, BatchChecksum, BatchChecksum, nil},
		{"A11 offsets jump", func(s *scene) { s.forge(func(h []byte) { h[23] += 2 }) }, OffsetOutOfOrder, 0, last},
		{"A12 a length above the bound", func(s *scene) { s.forge(func(h []byte) { h[8] = 0xff }) }, BatchTooLarge, 0, last},
		{"A13 flags that do not exist", func(s *scene) { s.forge(func(h []byte) { h[29] = 2 }) }, BatchFlags, 0, last},
		{"A13 a kind that does not exist", func(s *scene) { s.forge(func(h []byte) { h[28] = 6 }) }, BatchKind, 0, last},
		{"A14 fields that contradict each other", func(s *scene) { s.forge(func(h []byte) { clear(h[24:28]) }) }, BatchFields, 0, last},
		{"A15 zeros behind the last batch", appended(make([]byte, 4096)), 0, 0, end},
		{"A15 without a mark", both(appended(make([]byte, 4096)), noMark), 0, 0, end},
		{"A16 zeros from a sector's border inside the last batch", both(zeroFrom(aligned), noMark), 0, 0, last},
		{"A16 before the mark", zeroFrom(aligned), TailBelowDurableMark, 0, last},
		{"A17 zeros from anywhere else", both(zeroFrom(func(s *scene) int64 { return aligned(s) + 7 }), noMark), BatchChecksum, 0, last},
		{"A17 past the mark", both(zeroFrom(func(s *scene) int64 { return aligned(s) + 7 }), lastUnmarked), 0, 0, last},
		{"A18 zeros and then a byte", both(appended(zerosThenByte), noMark), BatchMagic, 0, end},
		{"A19 the same past the mark", appended(zerosThenByte), 0, 0, end},
		{"A20 a tail of zeros before the mark", func(s *scene) {
			s.edit(s.active(), func(b []byte) []byte { clear(b[s.at[2]:]); return b })
		}, TailBelowDurableMark, 0, last},
		{"A21 the file ends before the mark, between batches", func(s *scene) { s.edit(s.active(), func(b []byte) []byte { return b[:s.at[2]] }) }, TailBelowDurableMark, 0, last},
		{"A22 old batches in blocks that are used again", func(s *scene) {
			s.edit(s.active(), func(b []byte) []byte { return append(b, b[s.at[0]:s.at[1]]...) })
		}, 0, 0, end},
	}
}

func matrixB() []row {
	header := func(name string, change func(b []byte)) func(s *scene) {
		return func(s *scene) {
			s.edit(name, func(b []byte) []byte {
				change(b)
				be.PutUint32(b[60:], Sum(b[:60]))
				return b
			})
		}
	}
	blank := func(b []byte) func(s *scene) {
		return func(s *scene) { s.seal(); store(s.t, s.disk, FileName(3), b) }
	}
	return []row{
		{"B2 the next file was made, and nothing more", blank(nil), 0, 0, nil},
		{"B3 its header never landed", blank(make([]byte, HeaderSize)), 0, 0, nil},
		{"B4 a header that is damaged", func(s *scene) { s.flip(20) }, SegmentHeaderChecksum, SegmentHeaderChecksum, nil},
		{"B11 a blank between segments", func(s *scene) { store(s.t, s.disk, FileName(1), nil) }, Truncated, Truncated, nil},
		{"B12 a segment in the middle is missing", func(s *scene) { s.remove(1) }, SegmentMissing, SegmentMissing, nil},
		{"B12 the first segment is missing", func(s *scene) { s.remove(0) }, SegmentMissing, SegmentMissing, nil},
		{"B12 the newest segment is missing", func(s *scene) { s.remove(2) }, SegmentMissing, SegmentMissing, nil},
		{"B13 a copy under another id", func(s *scene) { store(s.t, s.disk, FileName(3), load(s.t, s.disk, s.active())) }, FooterMissing, FooterMissing, nil},
		{"B13 a segment that overlaps", header(FileName(2), func(b []byte) { b[39]-- }), ChainOverlap, ChainOverlap, nil},
		{"B13 a segment that leaves a gap", header(FileName(2), func(b []byte) { b[39]++ }), ChainGap, ChainGap, nil},
		{"B14 a number that is not written as one", func(s *scene) { store(s.t, s.disk, "3.log", []byte("x")) }, 0, 0, nil},
		{"B15 a sealed segment lacks a byte", func(s *scene) { s.edit(FileName(1), func(b []byte) []byte { return b[:len(b)-1] }) }, Truncated, Truncated, nil},
		{"B16 a bit early in a sealed segment", func(s *scene) { s.edit(FileName(0), func(b []byte) []byte { b[300] ^= 1; return b }) }, BatchChecksum, BatchChecksum, nil},
		{"B17 another magic", header(FileName(0), func(b []byte) { b[0] = 0 }), SegmentMagic, SegmentMagic, nil},
		{"B17 flags", header(FileName(0), func(b []byte) { b[7] = 1 }), SegmentFlags, SegmentFlags, nil},
		{"B22 a first segment with records and a zeroed header", func(s *scene) {
			s.edit(FileName(0), func(b []byte) []byte { clear(b[:HeaderSize]); return b })
		}, SegmentMagic, SegmentMagic, nil},
		{"a segment of another log", header(FileName(1), func(b []byte) { b[9] ^= 1 }), SegmentLog, SegmentLog, nil},
		{"a segment of another shard", header(FileName(1), func(b []byte) { b[24] ^= 1 }), SegmentName, SegmentName, nil},
		{"another segment under this name", header(FileName(1), func(b []byte) { b[55]++ }), SegmentID, SegmentID, nil},
		{"a sealed segment without its footer", func(s *scene) {
			s.edit(FileName(1), func(b []byte) []byte { return b[:len(b)-FooterSize] })
		}, FooterMissing, FooterMissing, nil},
		{"bytes behind a footer", func(s *scene) { s.edit(FileName(1), func(b []byte) []byte { return append(b, 1) }) }, BytesAfterFooter, BytesAfterFooter, nil},
	}
}

func matrixM() []row {
	damaged := func(name string, change func(b []byte) []byte) func(s *scene) {
		return func(s *scene) { s.edit(name, change) }
	}
	bit := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	half := func(b []byte) []byte { return b[:len(b)/2] }
	replicaFile := func(s *scene) {
		store(s.t, s.disk, ReplicaName, AppendReplica(nil, s.salt, &Replica{Generation: 4, Commit: 6}))
	}
	lostEnds := func(s *scene) {
		store(s.t, s.disk, ReplicaName, AppendReplica(nil, s.salt, &Replica{Generation: 4, Lost: []LostEnd{{2, 9, 9}, {3, 12, 9}}}))
	}
	return []row{
		{"M1 no mark", (*scene).noMark, 0, 0, nil},
		{"M2 a torn mark", damaged(MarkName, half), 0, 0, nil},
		{"M2 a mark with a bad checksum", damaged(MarkName, bit), 0, 0, nil},
		{"M2 a bad mark is as none: strict", both(damaged(MarkName, bit), func(s *scene) { s.flip(s.at[2] + 200) }), BatchChecksum, 0, last},
		{"M3 a mark that lags by one segment", both(func(s *scene) { s.markBack(1, 100) }, func(s *scene) { s.flip(s.at[0] + 200) }), 0, 0, func(s *scene) int64 { return s.at[0] }},
		{"M3 a mark that lags by two: strict", both(func(s *scene) { s.markBack(0, 100) }, func(s *scene) { s.flip(s.at[2] + 200) }), BatchChecksum, 0, last},
		{"M4 a mark whose segment retention should have removed long ago", func(s *scene) { s.markBack(0, 100); s.remove(0) }, SegmentMissing, SegmentMissing, nil},
		{"M5 a mark ahead of the data", func(s *scene) { s.markBack(2, s.got.End+1) }, TailBelowDurableMark, 0, nil},
		{"M6 a mark behind the data", func(s *scene) { s.markBack(2, s.at[1]) }, 0, 0, nil},
		{"M7 a replica file with a bad checksum", both(replicaFile, damaged(ReplicaName, bit)), ReplicaDamaged, ReplicaDamaged, nil},
		{"M7 a replica file that is cut", both(replicaFile, damaged(ReplicaName, half)), ReplicaDamaged, ReplicaDamaged, nil},
		{"M7 a replica file with lost ends", lostEnds, 0, 0, nil},
		{"M7 a replica file with lost ends and a bad checksum", both(lostEnds, damaged(ReplicaName, bit)), ReplicaDamaged, ReplicaDamaged, nil},
		{"M7 a replica file whose lost ends are cut off", both(lostEnds, damaged(ReplicaName, func(b []byte) []byte { return b[:len(b)-LostEndSize] })), ReplicaDamaged, ReplicaDamaged, nil},
		{"M10 a temporary file is left", func(s *scene) { store(s.t, s.disk, ReplicaName+TempSuffix, []byte("half")) }, 0, 0, nil},
		{"M12 a snapshot that is damaged is no business of the plan", func(s *scene) { store(s.t, s.disk, SnapshotName("producers"), []byte("junk")) }, 0, 0, nil},
		{"log.meta is damaged", damaged(MetaName, bit), MetaDamaged, MetaDamaged, nil},
		{"log.meta is missing", func(s *scene) { vanish(s.t, nil, s.disk, MetaName, nil, nil) }, MetaMissing, MetaMissing, nil},
		{"an old copy of the newest segment, from before a cut", func(s *scene) {
			old := load(s.t, s.disk, s.active())
			s.truncate(2, 1)
			s.append(200)
			s.commit()
			store(s.t, s.disk, s.active(), old)
		}, MarkMismatch, 0, nil},
	}
}

// matrix L1, L7
func TestMatrixOfTails(t *testing.T)      { play(t, matrixA()) }
func TestMatrixOfSegments(t *testing.T)   { play(t, matrixB()) }
func TestMatrixOfSmallFiles(t *testing.T) { play(t, matrixM()) }

func play(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := newScene(t)
			r.change(s)
			before := s.disk.Hash()
			p, err := NewPlan(s.input(s.disk))
			if s.disk.Hash() != before {
				t.Fatal("a plan changed the disk")
			}
			s.judge(t, r, p, err, r.kind)
			if r.kind == 0 {
				return
			}
			in := s.input(s.disk)
			in.Repair = RepairTail
			p, err = NewPlan(in)
			s.judge(t, r, p, err, r.forced)
		})
	}
}

// judge compares a plan with a row, and where it opens, carries it out and plans again.
func (s *scene) judge(t *testing.T, r row, p *Plan, err error, kind Kind) {
	t.Helper()
	var c *CorruptionError
	switch {
	case kind == 0 && err != nil:
		t.Fatalf("the log refuses: %v", err)
	case kind == 0:
		image := s.disk.Clone()
		s.apply(image, p)
		if again, err := NewPlan(s.input(image)); err != nil || again.Cut != nil || again.Next != p.Next {
			t.Fatalf("a second plan decides %+v, %v", again, err)
		}
		if r.cut != nil && p.Segments[len(p.Segments)-1].Size != r.cut(s) {
			t.Errorf("the newest segment keeps %d bytes, want %d", p.Segments[len(p.Segments)-1].Size, r.cut(s))
		}
		if (p.Cut != nil || r.kind != 0) && p.Repaired == "" {
			t.Error("the plan repairs and does not say so")
		}
	case !errors.As(err, &c) || c.Kind != kind:
		t.Fatalf("the plan answers %v, want %s", err, kind)
	case c.Shard != "shard" || c.File == "" || !strings.Contains(err.Error(), "felixd repair") || !strings.Contains(err.Error(), c.File):
		t.Errorf("the refusal does not say enough: %v", err)
	}
}

func TestB16DamageInsideASealedSegmentIsNamedByByteAndBothChecksums(t *testing.T) { // mission 278
	s := newScene(t)
	s.edit(FileName(0), func(b []byte) []byte { b[300] ^= 1; return b })
	_, err := NewPlan(s.input(s.disk))
	var c *CorruptionError
	if !errors.As(err, &c) || c.Segment != 0 || c.Position != HeaderSize || c.Expected == c.Found {
		t.Fatalf("the plan answers %v", err)
	}
	for _, lazy := range []Verify{VerifySealed, VerifyLazy} {
		in := s.input(s.disk)
		in.Verify = lazy
		if _, err := NewPlan(in); err != nil {
			t.Errorf("with %s it answers %v, and the damage is for the reader to find", lazy, err)
		}
	}
}

func TestB1ASealedNewestSegmentGetsASuccessor(t *testing.T) {
	s := newScene(t)
	s.seal()
	p, err := NewPlan(s.input(s.disk))
	if err != nil || p.Create == nil || p.Create.ID != 3 || p.Create.Base != s.got.Next || p.Create.Log != s.meta.Log {
		t.Fatalf("the plan is %+v, %v", p, err)
	}
}

func TestB18AnUnknownVersionIsNamedAndNothingIsTouched(t *testing.T) {
	s := newScene(t)
	s.edit(FileName(0), func(b []byte) []byte {
		b[5] = 2
		be.PutUint32(b[60:], Sum(b[:60]))
		return b
	})
	in := s.input(s.disk)
	in.Repair = RepairCut
	_, err := NewPlan(in)
	var v *VersionError
	if !errors.As(err, &v) || v.Found != 2 || !strings.Contains(err.Error(), FileName(0)) {
		t.Fatalf("the plan answers %v", err)
	}
}

func TestB21ABlankFirstSegmentOfANewLogIsMadeAgain(t *testing.T) {
	for _, b := range [][]byte{nil, make([]byte, 10), make([]byte, HeaderSize)} {
		s := newScene(t)
		disk := vfs.NewMem()
		store(t, disk, MetaName, AppendMeta(nil, &s.meta))
		store(t, disk, FileName(0), b)
		in := s.input(disk)
		in.Log, in.Base = id.LogID{}, 9
		p, err := NewPlan(in)
		if err != nil || p.Create == nil || p.Create.Base != 9 || p.Next != 9 || !slices.Equal(p.Delete, []string{FileName(0)}) {
			t.Errorf("the plan is %+v, %v", p, err)
		}
	}
}

func TestALogThatWasReportedNeverStartsAnew(t *testing.T) {
	s := newScene(t)
	var m *MissingError
	if _, err := NewPlan(s.input(vfs.NewMem())); !errors.As(err, &m) || m.Expected != s.meta.Log || !m.Found.IsZero() {
		t.Errorf("an empty directory: %v", err)
	}
	in := s.input(s.disk)
	in.Log[0]++
	if _, err := NewPlan(in); !errors.As(err, &m) || m.Found != s.meta.Log {
		t.Errorf("another log: %v", err)
	}
	for k := range uint64(3) {
		s.remove(k)
	}
	for _, without := range []string{"", MarkName} {
		if without != "" {
			s.noMark()
		}
		var c *CorruptionError
		if _, err := NewPlan(s.input(s.disk)); !errors.As(err, &c) || c.Kind != SegmentMissing {
			t.Errorf("no segments, without %q: %v", without, err)
		}
	}
}

func TestABlankFirstSegmentOfALogThatWasReportedIsDamage(t *testing.T) {
	s := newScene(t)
	disk := vfs.NewMem()
	store(t, disk, MetaName, AppendMeta(nil, &s.meta))
	store(t, disk, FileName(0), make([]byte, HeaderSize))
	var c *CorruptionError
	if p, err := NewPlan(s.input(disk)); !errors.As(err, &c) || c.Kind != SegmentMagic {
		t.Fatalf("the plan is %+v, %v", p, err)
	}
}

func TestIndexesAreRebuiltAndNeverTrusted(t *testing.T) {
	junk := func(b []byte) []byte {
		for i := range b {
			b[i] = byte(i * 7)
		}
		return b
	}
	forged := func(change func(x *Index)) func(s *scene) {
		return func(s *scene) {
			x, err := DecodeIndex(load(s.t, s.disk, IndexName(0)), s.salt, &Header{Log: s.meta.Log, ID: 0, Base: 5}, 1<<20)
			s.do(err)
			change(&x)
			store(s.t, s.disk, IndexName(0), AppendIndex(nil, s.salt, &x))
		}
	}
	for _, c := range []struct {
		name   string
		change func(s *scene)
	}{
		{"C1 missing", func(s *scene) { vanish(s.t, nil, s.disk, IndexName(0), nil, nil) }},
		{"C2 cut inside an entry", func(s *scene) { s.edit(IndexName(0), func(b []byte) []byte { return b[:len(b)-5] }) }},
		{"C3 entries past the end", forged(func(x *Index) { x.Entries = append(x.Entries, IndexEntry{99, 1 << 19, 1}) })},
		{"C4 of another segment", func(s *scene) { store(s.t, s.disk, IndexName(0), load(s.t, s.disk, IndexName(1))) }},
		{"C5 an entry that is no batch", forged(func(x *Index) { x.Entries[1].Position += 80 })},
		{"C5 an entry with another offset", forged(func(x *Index) { x.Entries[1].Offset++ })},
		{"C5 an entry with another time", forged(func(x *Index) { x.Entries[1].Micros++ })},
		{"C6 garbage", func(s *scene) { s.edit(IndexName(0), junk) }},
		{"C6 far too long", func(s *scene) {
			s.edit(IndexName(0), func(b []byte) []byte { return append(b, make([]byte, 1<<16)...) })
		}},
		{"C7 zeros", func(s *scene) { s.edit(IndexName(0), func(b []byte) []byte { clear(b); return b }) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.change(s)
			p, err := NewPlan(s.input(s.disk))
			if err != nil || !p.Segments[0].Rebuild || p.Segments[1].Rebuild {
				t.Fatalf("the plan is %+v, %v", p, err)
			}
			in := s.input(s.disk)
			in.Verify = VerifySealed
			if _, err := NewPlan(in); err != nil {
				t.Errorf("with sealed: %v", err)
			}
		})
	}
}

func TestC1ARebuiltIndexIsTheOneThatWasWritten(t *testing.T) {
	s := newScene(t)
	for range 3 {
		s.append(1500)
	}
	s.commit()
	p, err := NewPlan(s.input(s.disk))
	if err != nil || !slices.Equal(p.Index.Entries, s.index.Entries) || len(p.Index.Entries) < 2 {
		t.Fatalf("the index is %+v, written was %+v, %v", p.Index, s.index, err)
	}
}

func TestC8AnIndexWithoutItsSegmentGoes(t *testing.T) {
	s := newScene(t)
	store(t, s.disk, IndexName(77), []byte("x"))
	p, err := NewPlan(s.input(s.disk))
	if err != nil || !slices.Equal(p.Delete, []string{IndexName(77)}) {
		t.Fatalf("the plan deletes %v, %v", p.Delete, err)
	}
}

func TestB14FilesThatAreNotOursAreNamedAndLeftAlone(t *testing.T) {
	s := newScene(t)
	store(t, s.disk, "3.log", []byte("x"))
	store(t, s.disk, "notes.txt", []byte("x"))
	s.do(s.disk.Mkdir("dir"))
	p, err := NewPlan(s.input(s.disk))
	if err != nil || len(p.Warnings) != 3 || len(p.Delete) != 0 {
		t.Fatalf("warnings %q, deletes %v, %v", p.Warnings, p.Delete, err)
	}
}

func TestRepairCutEndsTheLogAtTheFirstDamage(t *testing.T) {
	s := newScene(t)
	s.edit(FileName(1), func(b []byte) []byte { b[HeaderSize+BatchHeaderSize+1600] ^= 1; return b })
	in := s.input(s.disk)
	in.Repair = RepairCut
	p, err := NewPlan(in)
	if err != nil || len(p.Segments) != 2 || p.Cut == nil || p.Cut.Segment != 1 || p.Segments[1].Sealed || !slices.Equal(p.Delete[:1], []string{FileName(2)}) || p.Repaired == "" {
		t.Fatalf("the plan is %+v, %v", p, err)
	}
	if p.Segments[1].Batches != 1 || p.Next != p.Segments[1].End || p.TruncatedBytes == 0 {
		t.Errorf("the plan is %+v", p)
	}
	s.apply(s.disk, p)
	if again, err := NewPlan(s.input(s.disk)); err != nil || again.Next != p.Next {
		t.Fatalf("after it: %+v, %v", again, err)
	}
}

func TestRepairCutKeepsWhatIsWholeBeforeADamagedHeader(t *testing.T) {
	s := newScene(t)
	s.flip(20)
	in := s.input(s.disk)
	in.Repair = RepairCut
	p, err := NewPlan(in)
	if err != nil || len(p.Segments) != 2 || p.Create == nil || p.Create.ID != 2 || p.Next != p.Segments[1].End {
		t.Fatalf("the plan is %+v, %v", p, err)
	}
	if _, err := NewPlan(s.input(s.disk)); err == nil {
		t.Fatal("without the operator's word it opens")
	}
}

func TestA25ManySmallBatchesAreReadOnceAndReported(t *testing.T) {
	disk := vfs.NewMem()
	w := newWriter(t, disk, 1)
	w.create(0)
	for range 10_000 {
		w.write(&batch.Batch{Base: w.got.Next, Count: 1, Kind: batch.GenerationStart, AppendMicros: 1})
	}
	w.commit()
	in := w.input(disk)
	var done, total int64
	in.Progress = func(d, of int64) {
		if d < done || d > of {
			t.Fatalf("progress goes from %d to %d of %d", done, d, of)
		}
		done, total = d, of
	}
	p, err := NewPlan(in)
	if err != nil || p.Next != 10_000 || p.Segments[0].Batches != 10_000 || done != total || total != w.got.End {
		t.Fatalf("next %d, %d of %d bytes read, %v", p.Next, done, total, err)
	}
}

func TestALogThatMustExistWithoutItsIdKnownNeverStartsAnew(t *testing.T) {
	s := newScene(t)
	must := func(disk vfs.FS) *PlanInput {
		in := s.input(disk)
		in.Log, in.MustExist = id.LogID{}, true
		return in
	}
	if p, err := NewPlan(must(s.disk)); err != nil || p.Meta == nil || *p.Meta != s.meta {
		t.Fatalf("a log that is there: %+v, %v", p, err)
	}
	var m *MissingError
	if _, err := NewPlan(must(vfs.NewMem())); !errors.As(err, &m) || !m.Expected.IsZero() || !m.Found.IsZero() ||
		strings.Contains(err.Error(), id.LogID{}.String()) || !strings.Contains(err.Error(), "log_missing") {
		t.Errorf("an empty directory: %v", err)
	}
	var c *CorruptionError
	for _, first := range [][]byte{nil, make([]byte, HeaderSize)} { // the first segment of a log that was open once was whole once
		disk := vfs.NewMem()
		store(t, disk, MetaName, AppendMeta(nil, &s.meta))
		if first != nil {
			store(t, disk, FileName(0), first)
		}
		if p, err := NewPlan(must(disk)); !errors.As(err, &c) {
			t.Errorf("a log without a segment is planned as %+v, %v", p, err)
		}
	}
}
