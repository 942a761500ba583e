package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

func TestAWholeLogIsToldAsItIsAndNothingChanges(t *testing.T) {
	for _, kind := range segment.LogKinds() { // mission 61, mission 175
		k := newKit(t, kind)
		before := k.disk.Hash()
		l := only(t, k.disk)
		if l.Verdict != Opens || l.Base != 10 || l.End != 34 || l.Records != 24 || len(l.Segments) != 3 || l.Segments[2].Sealed || !l.Segments[0].Sealed ||
			l.Segments[1].Records != 8 || l.Segments[1].Batches != 4 || l.Kind != kind.String() || l.Dir != k.dir || l.LogID != k.meta.Log.String() || l.Mark == nil {
			t.Errorf("the report is %+v", l)
		}
		if k.disk.Hash() != before || k.disk.OpenFiles() != 0 {
			t.Error("looking changed the disk, or left a file open")
		}
	}
}

func TestDamageIsToldWithItsPlaceInTextAndJSON(t *testing.T) { // mission 278
	k := newKit(t, segment.Cache)
	k.flip(segment.FileName(0), 300)
	r, err := Inspect(k.disk, Options{Dir: k.dir})
	if err != nil || r.Refuses() != 1 || r.Logs[0].Damage == nil || r.Logs[0].Damage.Kind != "batch_checksum" || r.Logs[0].Damage.Position != segment.HeaderSize {
		t.Fatalf("the report is %+v, %v", r, err)
	}
	var text, js bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&js)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{k.dir + ": refuses", segment.FileName(0), "byte 64", "batch_checksum", "1 of them refuse"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text does not say %q:\n%s", want, &text)
		}
	}
	var again Report
	if err := json.Unmarshal(js.Bytes(), &again); err != nil || again.Refuses() != 1 || *again.Logs[0].Damage != *r.Logs[0].Damage {
		t.Errorf("the JSON reads back as %+v, %v", again, err)
	}
}

func TestWhatAStartRepairsIsTold(t *testing.T) {
	k := newKit(t, segment.Stream)
	b, _ := read(t, k.disk, path.Join(k.dir, segment.FileName(2)))
	k.file(segment.FileName(2), append(b, make([]byte, 77)...))
	if l := only(t, k.disk); l.Verdict != Repairs || l.CutBytes != 77 || l.Repaired == "" {
		t.Errorf("the report is %+v", l)
	}
}

func TestLostEndsAreTold(t *testing.T) {
	k := newKit(t, segment.Stream)
	k.file(segment.ReplicaName, segment.AppendReplica(nil, k.salt, &segment.Replica{Generation: 4, Lost: []segment.LostEnd{{End: 12, Cursors: 60, DeadLetters: 1<<64 - 1}}}))
	r, err := Inspect(k.disk, Options{Dir: k.dir})
	if err != nil {
		t.Fatal(err)
	}
	var text, js bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&js)); err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(js.Bytes(), &again); err != nil || len(again.Logs[0].Lost) != 1 {
		t.Fatalf("the JSON reads back as %+v, %v", again, err)
	}
	if x := again.Logs[0].Lost[0]; x.End != 12 || x.Cursors == nil || *x.Cursors != 60 || x.DeadLetters != nil || !strings.Contains(text.String(), "ended at offset 12 once") {
		t.Fatalf("%+v\n%s", x, &text)
	}
}

func TestIndexesThatWereNotReadAreNotCalledGood(t *testing.T) {
	k := newKit(t, segment.Stream)
	for verify, want := range map[segment.Verify]string{segment.VerifyFull: "rebuild", segment.VerifyLazy: "unread"} {
		r, err := Inspect(k.disk, Options{Verify: verify})
		if err != nil || r.Logs[0].Segments[0].Index != want {
			t.Errorf("%s: %+v, %v", verify, r, err)
		}
	}
}

func TestAStoreInUseIsNotLookedInto(t *testing.T) {
	k := newKit(t, segment.Stream)
	lock, err := k.disk.Lock(segment.LockName, false, "pid 4711")
	k.do(err)
	var held *vfs.LockedError
	if _, err := Inspect(k.disk, Options{}); !errors.As(err, &held) {
		t.Errorf("inspect answers %v", err)
	}
	if _, err := Repair(k.disk, RepairOptions{Dir: k.dir, Action: CutTail, Yes: true}); !errors.As(err, &held) || held.Holder != "pid 4711" {
		t.Errorf("repair answers %v", err)
	}
	k.do(lock.Close())
}

func TestOtherDirectoriesAreRefusedByType(t *testing.T) {
	var store *NotAStoreError
	if _, err := Inspect(vfs.NewMem(), Options{}); !errors.As(err, &store) {
		t.Errorf("inspect answers %v", err)
	}
	k := newKit(t, segment.Stream)
	if _, err := Repair(vfs.NewMem(), RepairOptions{Dir: k.dir, Action: CutTail}); !errors.As(err, &store) {
		t.Errorf("repair answers %v", err)
	}
	for _, dir := range []string{"..", "/", "caches", "caches/../" + k.dir, "x/" + k.dir, "a/b/c", "groups/nothing"} {
		var log *NotALogError
		if _, err := Inspect(k.disk, Options{Dir: dir}); !errors.As(err, &log) {
			t.Errorf("inspect of %q answers %v", dir, err)
		}
		if _, err := Repair(k.disk, RepairOptions{Dir: dir, Action: CutTail}); !errors.As(err, &log) {
			t.Errorf("repair of %q answers %v", dir, err)
		}
	}
}

func TestForeignAndDeletedNamesAreListed(t *testing.T) {
	k := newKit(t, segment.Stream)
	k.do(k.disk.Mkdir("lost+found"))
	k.do(k.disk.Mkdir(segment.DeletedName))
	k.do(k.disk.Mkdir(segment.DeletedName + "/old"))
	r, err := Inspect(k.disk, Options{})
	if err != nil || len(r.Foreign) != 1 || r.Foreign[0] != "lost+found" || len(r.Deleted) != 1 || r.Deleted[0] != "deleted/old" {
		t.Errorf("the report is %+v, %v", r, err)
	}
}

func TestAnErrorOfReadingIsNoVerdictAboutALog(t *testing.T) {
	k := newKit(t, segment.Stream)
	gone := errors.New("the disk is gone")
	fault := vfs.NewFault(k.disk, nil)
	fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRead}, Name: "*.log", Err: gone})
	r, err := Inspect(fault, Options{})
	if err != nil || r.Logs[0].Verdict != Unreadable || r.Refuses() != 0 || !strings.Contains(r.Logs[0].Why, gone.Error()) {
		t.Errorf("the report is %+v, %v", r, err)
	}
	fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallReadDir}, Err: gone})
	if _, err := Inspect(fault, Options{}); !errors.Is(err, gone) {
		t.Errorf("without directories it answers %v", err)
	}
}

func TestProgressIsToldForEachLog(t *testing.T) {
	k := newKit(t, segment.Stream)
	var last, total int64
	_, err := Inspect(k.disk, Options{Progress: func(dir string, done, of int64) {
		if dir != k.dir {
			t.Errorf("progress of %q", dir)
		}
		last, total = done, of
	}})
	if err != nil || last == 0 || last != total {
		t.Errorf("%d of %d bytes, %v", last, total, err)
	}
}
