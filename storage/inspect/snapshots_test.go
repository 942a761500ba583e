package inspect

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// streamed is a streamed snapshot as a file.
func streamed(k *kit, salt segment.Salt, asOf id.Offset, body []byte) []byte {
	var b bytes.Buffer
	w := segment.NewStreamWriter(&b, salt)
	_, err := w.Write(body)
	k.do(err)
	k.do(w.Finish(asOf))
	return b.Bytes()
}

func TestSnapshotsOfBothFormsAreShownAndChecked(t *testing.T) { // mission 175
	k := newKit(t, segment.Cache) // offsets 10 to 34
	body := bytes.Repeat([]byte("entry"), 50_000)
	k.file(segment.SnapshotName("a-whole"), segment.AppendSnapshot(nil, k.salt, 20, []byte("state")))
	k.file(segment.SnapshotName("b-streamed"), streamed(k, k.salt, 34, body))
	k.file(segment.SnapshotName("c-ahead"), streamed(k, k.salt, 35, body))
	k.file(segment.SnapshotName("d-behind"), streamed(k, k.salt, 9, nil))
	k.file(segment.SnapshotName("e-foreign"), streamed(k, segment.SaltOf(id.LogID{8}), 20, body))
	k.file(segment.SnapshotName("f-flipped"), streamed(k, k.salt, 20, body))
	k.flip(segment.SnapshotName("f-flipped"), 100_000)
	k.file(segment.SnapshotName("g-short"), streamed(k, k.salt, 20, body)[:100_000])
	k.file(segment.SnapshotName("h-junk"), []byte("??"))
	k.file(segment.SnapshotName("i-whole-flipped"), segment.AppendSnapshot(nil, k.salt, 20, []byte("state")))
	k.flip(segment.SnapshotName("i-whole-flipped"), 34)
	before := k.disk.Hash()
	for _, c := range []struct {
		verify segment.Verify
		want   string
	}{
		{segment.VerifyFull, "whole/ok streamed/ok streamed/ahead streamed/behind streamed/damaged streamed/damaged streamed/damaged unknown/damaged whole/damaged"},
		{segment.VerifyLazy, "whole/ok streamed/ends_ok streamed/ahead streamed/behind streamed/damaged streamed/ends_ok streamed/damaged unknown/damaged whole/damaged"},
	} {
		r, err := Inspect(k.disk, Options{Verify: c.verify})
		if err != nil || len(r.Logs) != 1 || r.Logs[0].Verdict != Opens {
			t.Fatalf("the report is %+v, %v", r, err)
		}
		var got []string
		for i, s := range r.Logs[0].Snapshots {
			got = append(got, s.Form+"/"+s.State)
			if s.File[0] != byte('a'+i) || s.Bytes == 0 || (s.State == "damaged") != (s.Why != "") {
				t.Errorf("snapshot %d is shown as %+v", i, s)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: the snapshots are\n%s, want\n%s", c.verify, strings.Join(got, " "), c.want)
		}
		var text bytes.Buffer
		k.do(r.WriteText(&text))
		if want := "b-streamed.snap  streamed, as of offset 34, 25"; !strings.Contains(text.String(), want) {
			t.Errorf("the text does not say %q:\n%s", want, &text)
		}
	}
	if k.disk.Hash() != before || k.disk.OpenFiles() != 0 {
		t.Error("looking changed the disk, or left a file open")
	}
}

func TestALogThatRefusesHasNoSnapshotsToShow(t *testing.T) {
	k := newKit(t, segment.Cache)
	k.file(segment.SnapshotName("cache"), streamed(k, k.salt, 20, nil))
	k.flip(segment.FileName(0), 300)
	if l := only(t, k.disk); l.Verdict != Refuses || l.Snapshots != nil {
		t.Errorf("the report is %+v", l)
	}
}

func TestARepairRemovesAStreamedSnapshot(t *testing.T) {
	k := newKit(t, segment.Cache)
	k.file(segment.SnapshotName("cache"), streamed(k, k.salt, 34, []byte("state")))
	k.flip(segment.FileName(1), 1200)
	if out, err := k.repair(CutAtDamage, true); err != nil || !out.Done {
		t.Fatal(out, err)
	}
	if _, there := read(t, k.disk, path.Join(k.dir, segment.SnapshotName("cache"))); there {
		t.Error("it is still there")
	}
}
