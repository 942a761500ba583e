package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// originals are the segments of a kit, by file name, as they were before a repair.
func (k *kit) originals() map[string][]byte {
	out := map[string][]byte{}
	for n := range uint64(3) {
		if b, ok := read(k.t, k.disk, path.Join(k.dir, segment.FileName(n))); ok {
			out[segment.FileName(n)] = b
		}
	}
	return out
}

func (k *kit) repair(action Action, yes bool) (*Outcome, error) {
	return Repair(k.disk, RepairOptions{Dir: k.dir, Action: action, Yes: yes, NowMicros: 1, Holder: "kit"})
}

func TestNothingIsRepairedWithoutTheOperatorsWord(t *testing.T) {
	for _, action := range []Action{CutTail, CutAtDamage, AcceptEmpty} {
		k := newKit(t, segment.Stream)
		k.flip(segment.FileName(2), k.at[3]+100)
		before := k.disk.Hash()
		out, err := k.repair(action, false)
		if err != nil || out.Done || len(out.Steps) == 0 || k.disk.Hash() != before {
			t.Errorf("%s: %+v, %v", action, out, err)
		}
	}
}

func TestALogThatOpensIsLeftAlone(t *testing.T) {
	for _, action := range []Action{CutTail, CutAtDamage, AcceptEmpty} {
		k := newKit(t, segment.Stream)
		before := k.disk.Hash()
		out, err := k.repair(action, true)
		if err != nil || out.Done || len(out.Steps) != 0 || out.Base != 10 || out.End != 34 || k.disk.Hash() != before {
			t.Errorf("%s: %+v, %v", action, out, err)
		}
	}
}

func TestADamagedTailIsCutAndKeptAside(t *testing.T) {
	k := newKit(t, segment.Stream)
	k.flip(segment.FileName(2), k.at[3]+100)
	was := k.originals()
	out, err := k.repair(CutTail, true)
	if err != nil || !out.Done || out.End != 32 {
		t.Fatalf("the outcome is %+v, %v", out, err)
	}
	if l := only(t, k.disk); l.Verdict != Opens || l.End != 32 || l.Segments[2].Bytes != k.at[3] || l.Mark.Synced != k.at[3] {
		t.Errorf("afterwards the log is %+v", l)
	}
	if b, _ := read(t, k.disk, path.Join(out.Salvaged, segment.FileName(2))); !bytes.Equal(b, was[segment.FileName(2)]) {
		t.Error("what was cut is not kept")
	}
}

func TestDamageInTheMiddleNeedsTheStrongerWord(t *testing.T) {
	k := newKit(t, segment.Groups)
	k.flip(segment.FileName(1), 1200)
	k.file(segment.SnapshotName("producers"), []byte("state"))
	was := k.originals()
	before := k.disk.Hash()
	var damaged *segment.CorruptionError
	if _, err := k.repair(CutTail, true); !errors.As(err, &damaged) || k.disk.Hash() != before {
		t.Fatalf("the weaker one answers %v, or changes something", err)
	}
	out, err := k.repair(CutAtDamage, true)
	if err != nil || !out.Done || out.End != 20 {
		t.Fatalf("the outcome is %+v, %v", out, err)
	}
	if l := only(t, k.disk); l.Verdict != Opens || len(l.Segments) != 2 || l.End != 20 {
		t.Errorf("afterwards the log is %+v", l)
	}
	for _, name := range []string{segment.FileName(1), segment.FileName(2)} {
		if b, _ := read(t, k.disk, path.Join(out.Salvaged, name)); !bytes.Equal(b, was[name]) {
			t.Errorf("%s is not kept", name)
		}
	}
	if _, there := read(t, k.disk, path.Join(k.dir, segment.SnapshotName("producers"))); there {
		t.Error("a snapshot outlived what it was made of")
	}
}

func TestALostTailIsAccepted(t *testing.T) {
	k := newKit(t, segment.Stream)
	b, _ := read(t, k.disk, path.Join(k.dir, segment.FileName(2)))
	k.file(segment.FileName(2), b[:k.at[2]])
	if out, err := k.repair(CutTail, true); err != nil || !out.Done || out.End != 30 {
		t.Fatalf("the outcome is %+v, %v", out, err)
	}
}

func TestALostSegmentIsAccepted(t *testing.T) {
	for lost, end := range []uint64{34, 18, 26} {
		k := newKit(t, segment.Stream)
		k.do(k.disk.Remove(path.Join(k.dir, segment.FileName(uint64(lost)))))
		out, err := k.repair(CutAtDamage, true)
		if err != nil || !out.Done || out.End != end {
			t.Errorf("segment %d: %+v, %v", lost, out, err)
		}
	}
}

func TestAnEmptyLogBeginsPastWhatWasThere(t *testing.T) {
	k := newKit(t, segment.Cache)
	k.flip(segment.FileName(0), 20)
	out, err := k.repair(AcceptEmpty, true)
	if err != nil || !out.Done || out.Base != 26 {
		t.Fatalf("the outcome is %+v, %v", out, err)
	}
	if l := only(t, k.disk); l.Verdict != Opens || l.Base != 26 || l.Records != 0 || l.LogID != k.meta.Log.String() {
		t.Errorf("afterwards the log is %+v", l)
	}
	if b, there := read(t, k.disk, path.Join(out.Salvaged, segment.FileName(1))); !there || len(b) == 0 {
		t.Error("what was there is not kept")
	}
}

func TestALogThatIsGoneIsAcceptedUnderTheIDItHad(t *testing.T) {
	k := newKit(t, segment.Counters)
	k.do(k.disk.Rename(k.dir, "elsewhere"))
	o := RepairOptions{Dir: k.dir, Action: AcceptEmpty, Yes: true, Base: 700}
	var unknown *NoLogIDError
	if _, err := Repair(k.disk, o); !errors.As(err, &unknown) {
		t.Fatalf("without an id it answers %v", err)
	}
	o.Log = id.LogID{9}
	if out, err := Repair(k.disk, o); err != nil || !out.Done || out.Salvaged != "" {
		t.Fatalf("the outcome is %+v, %v", out, err)
	}
	if l := only(t, k.disk); l.Base != 700 || l.LogID != o.Log.String() || l.Verdict != Opens {
		t.Errorf("afterwards the log is %+v", l)
	}
}

// TestAnInterruptedRepairLosesNothingAndCanBeRunAgain cuts the power at every step of a repair: each byte of each segment is in its
// place or in a copy, and another repair brings the log to the same end.
func TestAnInterruptedRepairLosesNothingAndCanBeRunAgain(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 1))
	for _, action := range []Action{CutTail, CutAtDamage, AcceptEmpty} {
		k := newKit(t, segment.Stream)
		if action == CutTail {
			k.flip(segment.FileName(2), k.at[3]+100)
		} else {
			k.flip(segment.FileName(1), 1200)
		}
		was := k.originals()
		var images []*vfs.Mem
		k.disk.OnOp(func(vfs.Op) {
			images = append(images, k.disk.Clone(), k.disk.CrashHard(), k.disk.Crash(chance.IntN), k.disk.Crash(chance.IntN))
		})
		want, err := k.repair(action, true)
		k.disk.OnOp(nil)
		if err != nil || !want.Done {
			t.Fatalf("%s: %+v, %v", action, want, err)
		}
		for i, image := range images {
			kept := everything(t, image, ".")
			for name, b := range was {
				if !kept[string(b)] {
					t.Fatalf("%s: after crash %d of %d, %s is nowhere any more", action, i, len(images), name)
				}
			}
			out, err := Repair(image, RepairOptions{Dir: k.dir, Action: action, Yes: true, Log: k.meta.Log})
			if err != nil || out.End != want.End {
				t.Fatalf("%s: after crash %d of %d, another repair answers %+v, %v", action, i, len(images), out, err)
			}
		}
	}
}

// everything is the content of all files below a directory. A segment that was cut is there in part as well as whole: only its copy counts.
func everything(t testing.TB, disk vfs.FS, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	entries, err := disk.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if e.Kind == vfs.Directory {
			for content := range everything(t, disk, name) {
				out[content] = true
			}
		} else if b, ok := read(t, disk, name); ok {
			out[string(b)] = true
		}
	}
	return out
}

func TestAFullDiskStopsARepairBeforeAnythingIsTakenAway(t *testing.T) {
	k := newKit(t, segment.Stream)
	k.flip(segment.FileName(1), 1200)
	was := k.originals()
	k.disk.SetCapacity(k.disk.Used() + 4096)
	if _, err := k.repair(CutAtDamage, true); !vfs.IsNoSpace(err) {
		t.Fatalf("the repair answers %v", err)
	}
	for name, b := range was {
		if now, _ := read(t, k.disk, path.Join(k.dir, name)); !bytes.Equal(now, b) {
			t.Errorf("%s was changed", name)
		}
	}
	k.disk.SetCapacity(vfs.Unlimited)
	if out, err := k.repair(CutAtDamage, true); err != nil || !out.Done || !strings.HasSuffix(out.Salvaged, "/2") {
		t.Errorf("with room it answers %+v, %v", out, err)
	}
}

func TestAnOutcomeIsToldInTextAndJSON(t *testing.T) {
	k := newKit(t, segment.Stream)
	tell := func(action Action, yes bool) string {
		out, err := k.repair(action, yes)
		if err != nil {
			t.Fatal(err)
		}
		var text, js bytes.Buffer
		var again Outcome
		if err := errors.Join(out.WriteText(&text), out.WriteJSON(&js), json.Unmarshal(js.Bytes(), &again)); err != nil || again.End != out.End || again.Done != out.Done {
			t.Errorf("the JSON reads back as %+v, %v", again, err)
		}
		return text.String()
	}
	if text := tell(CutTail, true); !strings.Contains(text, "nothing was changed") {
		t.Errorf("of a whole log it says %s", text)
	}
	k.flip(segment.FileName(2), k.at[3]+100)
	if text := tell(CutTail, false); !strings.Contains(text, "--yes") || !strings.Contains(text, "batch_checksum") {
		t.Errorf("of a plan it says %s", text)
	}
	if text := tell(CutTail, true); !strings.Contains(text, "was done") || !strings.Contains(text, "kept in "+segment.SalvagedName) {
		t.Errorf("of what it did it says %s", text)
	}
}

func TestActionsAreReadAsTheyAreWritten(t *testing.T) {
	for _, a := range []Action{CutTail, CutAtDamage, AcceptEmpty} {
		if got, err := ParseAction(a.String()); err != nil || got != a {
			t.Errorf("%s parses to %s, %v", a, got, err)
		}
	}
	if _, err := ParseAction("everything"); err == nil {
		t.Error("an action that does not exist parses")
	}
	k := newKit(t, segment.Stream)
	if _, err := k.repair(Action(9), true); err == nil || !strings.Contains(err.Error(), "action_9") {
		t.Errorf("an action that does not exist: %v", err)
	}
}

// TestAnErrorOfTheDiskStopsARepairThatCanBeRunAgain fails each call of a repair in turn.
func TestAnErrorOfTheDiskStopsARepairThatCanBeRunAgain(t *testing.T) {
	gone := errors.New("the disk is gone")
	// Not the closing of files, most of which were only read.
	calls := []vfs.Call{vfs.CallCreate, vfs.CallOpen, vfs.CallMkdir, vfs.CallReadDir, vfs.CallStat, vfs.CallRename, vfs.CallRemove, vfs.CallSyncDir,
		vfs.CallLock, vfs.CallRead, vfs.CallWrite, vfs.CallTruncate, vfs.CallSync, vfs.CallSize}
	for _, action := range []Action{CutTail, CutAtDamage, AcceptEmpty} {
		for n := 1; ; n++ {
			k := newKit(t, segment.Stream)
			k.flip(segment.FileName(2), k.at[3]+100)
			was := k.originals()
			fault := vfs.NewFault(k.disk, nil)
			fault.Add(vfs.Rule{Calls: calls, From: n, Times: 1, Err: gone})
			o := RepairOptions{Dir: k.dir, Action: action, Yes: true, Log: k.meta.Log, Holder: "kit"}
			out, err := Repair(fault, o)
			if err == nil && out.Done {
				if n < 15 {
					t.Errorf("%s takes %d calls only", action, n)
				}
				break // the last call was before n
			}
			if !errors.Is(err, gone) {
				t.Fatalf("%s, call %d fails, and the repair answers %+v, %v", action, n, out, err)
			}
			if k.disk.OpenFiles() != 0 {
				t.Fatalf("%s, call %d fails, and files stay open", action, n)
			}
			kept := everything(t, k.disk, ".")
			for name, b := range was {
				if !kept[string(b)] {
					t.Fatalf("%s, call %d fails, and %s is nowhere any more", action, n, name)
				}
			}
			again, err := Repair(k.disk, o)
			if v := only(t, k.disk).Verdict; err != nil || v != Opens && v != Repairs {
				t.Fatalf("%s, call %d failed, and another repair answers %+v, %v; the log then %s", action, n, again, err, v)
			}
		}
	}
}
