package inspect

import (
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// replica is the replica file of a log.
func (k *kit) replica(disk vfs.FS) segment.Replica {
	k.t.Helper()
	b, ok := read(k.t, disk, path.Join(k.dir, segment.ReplicaName))
	if !ok {
		return segment.Replica{}
	}
	r, err := segment.DecodeReplica(b, k.salt)
	k.do(err)
	return r
}

// goesOn is the offset at which a start has the log go on, by what a repair has left; and whether a reader that was told of
// everything below seen is sent behind it.
func (k *kit) goesOn(disk vfs.FS, end, seen id.Offset) (next id.Offset, noticed bool) {
	kept, next := segment.PassOver(k.replica(disk).Lost, 10, end)
	behind, yes := segment.PassedOver(kept, next, seen)
	return next, yes && behind <= next
}

// Clients keep the versions of cache entries and the places of watches. What is cut off was told of, so none of it comes again.
func TestVersionsThatARepairCutsOffAreNotGivenAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(k *kit)
		action Action
		end    id.Offset // of what is left
	}{
		{"the last batch is damaged", func(k *kit) { k.flip(segment.FileName(2), k.at[3]+100) }, CutTail, 32},
		{"the end of the last segment is gone", func(k *kit) {
			b, _ := read(k.t, k.disk, path.Join(k.dir, segment.FileName(2)))
			k.file(segment.FileName(2), b[:k.at[2]])
		}, CutTail, 30},
		{"damaged in the first segment", func(k *kit) { k.flip(segment.FileName(0), 3000) }, CutAtDamage, 16},
		{"the last segment is gone", func(k *kit) { k.do(k.disk.Remove(path.Join(k.dir, segment.FileName(2)))) }, CutAtDamage, 26},
		{"the middle segment is gone", func(k *kit) { k.do(k.disk.Remove(path.Join(k.dir, segment.FileName(1)))) }, CutAtDamage, 18},
		{"the middle segment and the mark are gone", func(k *kit) {
			k.do(k.disk.Remove(path.Join(k.dir, segment.FileName(1))))
			k.do(k.disk.Remove(path.Join(k.dir, segment.MarkName)))
		}, CutAtDamage, 18},
	} {
		k := newKit(t, segment.Cache)
		c.damage(k)
		plan, err := k.repair(c.action, false)
		if err != nil || k.replica(k.disk).Lost != nil || !strings.Contains(strings.Join(plan.Steps, "\n"), "are not given again") {
			t.Errorf("%s: the plan is %+v, %v", c.name, plan, err)
		}
		out, err := k.repair(c.action, true)
		if err != nil || !out.Done || id.Offset(out.End) != c.end {
			t.Errorf("%s: %+v, %v", c.name, out, err)
		}
		if next, noticed := k.goesOn(k.disk, c.end, 34); next <= 34 || !noticed {
			t.Errorf("%s: the log goes on at %d, noticed %t", c.name, next, noticed)
		}
		if l := only(t, k.disk); l.Verdict != Opens || len(l.Lost) != 1 {
			t.Errorf("%s: afterwards the log is %+v", c.name, l)
		}
	}
}

// Whatever was kept before stays: what a power cut took, and how far offsets were reserved when the log was damaged.
func TestARepairKeepsWhatWasNotToBeGivenAgainBefore(t *testing.T) {
	k := newKit(t, segment.Cache)
	var lost []segment.LostEnd
	for i := range id.Offset(segment.MaxLostEnds - 1) {
		lost = append(lost, segment.LostEnd{End: i / 8, Cursors: 11 + i/8})
	}
	lost = append(lost, segment.LostEnd{End: 30, Cursors: 5_000_000}) // the reservation of the open at which it was damaged
	k.file(segment.ReplicaName, segment.AppendReplica(nil, k.salt, &segment.Replica{Generation: 4, Commit: 12, Held: true, Lost: lost}))
	k.flip(segment.FileName(2), k.at[3]+100)
	if out, err := k.repair(CutTail, true); err != nil || !out.Done {
		t.Fatalf("the outcome is %+v, %v", out, err)
	}
	r := k.replica(k.disk)
	if r.Generation != 4 || r.Commit != 12 || !r.Held || len(r.Lost) > segment.MaxLostEnds {
		t.Errorf("the replica file is %+v", r)
	}
	if next, noticed := k.goesOn(k.disk, 32, 5_000_000); next <= 5_000_000 || !noticed {
		t.Errorf("the log goes on at %d, noticed %t", next, noticed)
	}
}

// Streams promise consecutive offsets, and what groups noted is cut with the stream: nothing is passed over in them.
func TestOffsetsOfOtherLogsStayConsecutive(t *testing.T) {
	for _, kind := range []segment.LogKind{segment.Stream, segment.Counters, segment.Groups, segment.DeadLetters} {
		k := newKit(t, kind)
		k.flip(segment.FileName(2), k.at[3]+100)
		if out, err := k.repair(CutTail, true); err != nil || !out.Done || k.replica(k.disk).Lost != nil {
			t.Errorf("%s: %+v, %v", kind, out, err)
		}
	}
}

func TestWhereverARepairIsInterruptedNoVersionIsGivenAgain(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 1))
	k := newKit(t, segment.Cache)
	k.flip(segment.FileName(1), 1200)
	var images []*vfs.Mem
	k.disk.OnOp(func(vfs.Op) { images = append(images, k.disk.Clone(), k.disk.CrashHard(), k.disk.Crash(chance.IntN)) })
	want, err := k.repair(CutAtDamage, true)
	k.disk.OnOp(nil)
	if err != nil || !want.Done {
		t.Fatalf("%+v, %v", want, err)
	}
	for i, image := range images {
		k.disk = image
		out, err := k.repair(CutAtDamage, true)
		if err != nil || out.End != want.End {
			t.Fatalf("after crash %d of %d, another repair answers %+v, %v", i, len(images), out, err)
		}
		if next, noticed := k.goesOn(image, id.Offset(out.End), 34); next <= 34 || !noticed {
			t.Errorf("after crash %d of %d, the log goes on at %d, noticed %t", i, len(images), next, noticed)
		}
	}
}

// newest replaces the newest segment of a kit by one with these batches; the records of one are a byte each.
func (k *kit) newest(base id.Offset, batches ...batch.Batch) (at []int64) {
	b := segment.AppendHeader(nil, &segment.Header{Log: k.meta.Log, NameHash: k.meta.NameHash, Base: base, ID: 2})
	k.next = base
	for _, x := range batches {
		if x.Base, x.AppendMicros = k.next, 5; x.Kind == batch.Records {
			x.Body = make([]byte, x.Count)
		}
		at = append(at, int64(len(b)))
		h := segment.Describe(&x, segment.Sum(x.Body))
		b = append(segment.AppendBatchHeader(b, k.salt, &h), x.Body...)
		k.next = h.End()
	}
	k.file(segment.FileName(2), b)
	k.mark = segment.Mark{Segment: 2, Synced: int64(len(b)), Base: base}
	k.file(segment.MarkName, segment.AppendMark(nil, k.salt, &k.mark))
	return at
}

// gone cuts at a damage, and wants no version below the kit's next to be given again.
func (k *kit) gone() {
	k.t.Helper()
	seen := k.next
	out, err := k.repair(CutAtDamage, true)
	if err != nil || !out.Done {
		k.t.Fatalf("%+v, %v", out, err)
	}
	if next, noticed := k.goesOn(k.disk, id.Offset(out.End), seen); next <= seen || !noticed {
		k.t.Errorf("the log ends at %d and goes on at %d, %d too early; noticed %t", out.End, next, seen.Since(next), noticed)
	}
}

// A segment in which offsets were passed over has more of them than bytes: what was told of is behind those.
func TestVersionsBehindOffsetsThatWerePassedOverAreNotGivenAgain(t *testing.T) {
	const passed, n = 1 << 26, 200_000 // as many as an earlier repair of a full segment passes over; and fewer than one that is full has
	batches := []batch.Batch{
		{Kind: batch.Records, Count: 2}, {Kind: batch.GenerationStart, Count: passed},
		{Kind: batch.Records, Count: n}, {Kind: batch.Records, Count: n}, {Kind: batch.Records, Count: n},
	}
	for damaged := range 3 {
		k := newKit(t, segment.Cache)
		at := k.newest(26, batches...)
		k.file(segment.ReplicaName, segment.AppendReplica(nil, k.salt, &segment.Replica{Lost: []segment.LostEnd{{End: 28, Cursors: 28 + passed - 1}}}))
		k.flip(segment.FileName(2), at[damaged]+10)
		k.gone()
	}
}

// Where a segment begins is not known once its header is damaged; there may be as many records in it as bytes, behind those before it.
func TestVersionsOfASegmentWhoseHeaderIsDamagedAreNotGivenAgain(t *testing.T) {
	k := newKit(t, segment.Cache)
	k.next = 1_700_000_000_000_000 // the clock, where caches begin
	for n := range uint64(2) {
		k.segment(n, true)
	}
	k.newest(k.next, batch.Batch{Kind: batch.Records, Count: 300_000}, batch.Batch{Kind: batch.Records, Count: 300_000})
	k.flip(segment.FileName(2), 20)
	k.do(k.disk.Remove(k.dir + "/" + segment.MarkName))
	k.gone()
}

// An empty log in place of one from which versions were told of begins past them, also if the clock was set back.
func TestAnEmptyCacheBeginsPastVersionsThatAreReserved(t *testing.T) {
	k := newKit(t, segment.Cache)
	k.file(segment.ReplicaName, segment.AppendReplica(nil, k.salt, &segment.Replica{Lost: []segment.LostEnd{{End: 34, Cursors: 9000}}}))
	k.flip(segment.FileName(0), 20)
	if out, err := k.repair(AcceptEmpty, true); err != nil || !out.Done || out.Base <= 9000 {
		t.Errorf("the outcome is %+v, %v", out, err)
	}
}
