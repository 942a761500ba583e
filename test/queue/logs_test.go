package queue

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// The logs of a shard's groups lie in folders of their own.
const (
	cursorFolder = "groups"
	deadFolder   = "dead-letters"
)

// isGroupLog reports whether a file belongs to the cursors of groups.
func isGroupLog(name string) bool { return strings.HasPrefix(name, cursorFolder+"/") }

// isDeadLog is the same for dead letters.
func isDeadLog(name string) bool { return strings.HasPrefix(name, deadFolder+"/") }

// isMainLog is the same for the records of the stream.
func isMainLog(name string) bool {
	return !isGroupLog(name) && !isDeadLog(name) && strings.HasSuffix(name, ".log")
}

// logFile is the one segment of the shard's log in a folder, and how long it is.
func logFile(t testing.TB, m *vfs.Mem, folder string) (name string, size int64) {
	t.Helper()
	for _, dir := range must(m.ReadDir(folder))(t) {
		for _, e := range must(m.ReadDir(path.Join(folder, dir.Name)))(t) {
			if strings.HasSuffix(e.Name, ".log") {
				if name != "" {
					t.Fatalf("%s has more than one segment", folder)
				}
				name, size = path.Join(folder, dir.Name, e.Name), e.Size
			}
		}
	}
	if name == "" {
		t.Fatalf("%s has no segment", folder)
	}
	return name, size
}

// edit changes a file of a disk that no broker has.
func edit(t testing.TB, m *vfs.Mem, name string, change func(vfs.File) error) {
	t.Helper()
	f := must(m.Open(name, true))(t)
	if err := errors.Join(change(f), f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// everything acks all that comes until nothing does, and returns what it was.
func (w worker) everything() (all []id.Offset) {
	w.t.Helper()
	for {
		list := w.poll(client.GroupPollOptions{Max: 100, Visibility: hour})
		if len(list) == 0 {
			slices.Sort(all)
			return all
		}
		w.ack(list...)
		all = append(all, offsets(list)...)
	}
}

// The log of the cursors is torn anywhere behind what was durable: what was acked for sure does not come again, and nothing that was not is
// skipped.
//
// matrix I19, matrix L11; field case DUR-06 (cursors), DUR-09 (queues)
func TestI19_ATornTailOfTheCursorsSkipsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	b := s.start(vfs.NewMem())
	w := s.connect()
	w.publish(numbered(10)...)
	all := w.take(6, client.GroupPollOptions{Visibility: hour})
	w.ack(all[0], all[1], all[4])
	_, durable := logFile(t, b.mem, cursorFolder)
	stuck := b.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Match: isGroupLog, Block: true})
	acks := make(chan error, 2)
	for _, m := range all[2:4] {
		w := s.connect(func(o *client.Options) { o.Attempts, o.AckTimeout = 1, testkit.Patience })
		go func() { acks <- w.tryAck(m.Offset) }()
	}
	written := func() int64 { _, size := logFile(t, b.mem, cursorFolder); return size }
	testkit.Eventually(t, "the acks are written", func() bool { return written() > durable && b.metric("felix_group_in_flight") <= 1 })
	image := b.mains.Cut(killed)
	stuck.Release()
	b.end(b.node.Close)
	for range 2 {
		<-acks
	}
	name, size := logFile(t, image, cursorFolder)
	if size == durable {
		t.Fatal("nothing was written behind what is durable")
	}
	step := max(1, (size-durable)/8)
	for cut := durable; cut <= size; cut += step {
		torn := image.Clone()
		edit(t, torn, name, func(f vfs.File) error { return f.Truncate(cut) })
		b := s.start(torn)
		w := s.connect()
		got := w.everything()
		for _, o := range got {
			if o < 2 || o == 4 {
				t.Errorf("cut at %d: %d was acked, and came again", cut, o)
			}
		}
		for _, o := range []id.Offset{5, 6, 7, 8, 9} {
			if !slices.Contains(got, o) {
				t.Errorf("cut at %d: %d was skipped", cut, o)
			}
		}
		w.drained()
		b.stop()
	}
}

// One byte inside the log of the cursors, or of the dead letters, is another one: polls and settlements say that the groups' log is damaged,
// and nothing else of the shard is touched.
//
// matrix I20
func TestI20_ADamagedLogOfGroupsIsRefusedAndTheStreamIsServed(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{cursorFolder, deadFolder} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			b := s.start(vfs.NewMem())
			w := s.connect()
			w.publish(numbered(4)...)
			list := w.take(4, client.GroupPollOptions{})
			w.ack(list[:2]...)
			for _, m := range list[2:] {
				if err := w.tryGiveUp(m.Offset); err != nil {
					t.Fatal(err)
				}
			}
			b.stop()
			image := b.mem.Clone()
			name, size := logFile(t, image, folder)
			edit(t, image, name, func(f vfs.File) error {
				var one [1]byte
				at := size - 3 // in what was synced
				if _, err := f.ReadAt(one[:], at); err != nil {
					return err
				}
				one[0] ^= 1
				_, err := f.WriteAt(one[:], at)
				return err
			})
			s.start(image)
			w = s.connect(func(o *client.Options) { o.Attempts = 1 })
			ctx, cancel := testkit.Within()
			defer cancel()
			_, pollErr := w.GroupPoll(ctx, namespace, jobs, 0, workers, client.GroupPollOptions{})
			for what, err := range map[string]error{"poll": pollErr, "ack": w.tryAck(3)} {
				var refused *client.BrokerError
				if !errors.As(err, &refused) || refused.Code != wire.CodeStorage || !strings.Contains(err.Error(), "groups") {
					t.Errorf("%s: %v, want a refusal that names the groups' log", what, err)
				}
			}
			if o := w.publish("more"); o != 4 {
				t.Errorf("published at %d, want 4", o)
			}
			n := 0
			for r, err := range w.ReadRange(ctx, namespace, jobs, client.ReadOptions{}) {
				if err != nil || r.Offset != id.Offset(n) {
					t.Fatalf("read %d: %v", r.Offset, err)
				}
				n++
			}
			if n != 5 {
				t.Errorf("%d records are read, want 5", n)
			}
		})
	}
}

// A record that is not durable yet is not handed out, and is as soon as it is.
//
// matrix I18, matrix E4 (group polls)
func TestI18_APollStopsAtWhatIsDurable(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	b := s.start(vfs.NewMem())
	w, p := s.connect(), s.connect()
	w.publish(numbered(3)...)
	w.ack(w.take(3, client.GroupPollOptions{})...)
	stuck := b.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Match: isMainLog, Block: true})
	published := make(chan error, 1)
	go func() {
		ctx, cancel := testkit.Within()
		defer cancel()
		_, err := p.Publish(ctx, namespace, jobs, []byte("unsure"))
		published <- err
	}()
	<-stuck.Reached()
	if list := w.poll(client.GroupPollOptions{Max: 10, Wait: 200 * time.Millisecond}); len(list) > 0 {
		t.Errorf("%d was handed out before it was durable", list[0].Offset)
	}
	stuck.Release()
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	list := w.take(1, client.GroupPollOptions{})
	same(t, "once it is durable", list, upTo(3, 4))
	w.ack(list...)
	w.drained()
}
