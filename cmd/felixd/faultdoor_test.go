package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
)

// scratch is a folder with a short path: the name of a socket is bounded.
func scratch(t *testing.T) *dataDir {
	t.Helper()
	path, err := os.MkdirTemp("", "felix")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	data, err := openDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(data.close)
	return data
}

// doorAt opens a fault door over a system of the test's own, on a clock that stands.
func doorAt(t *testing.T, data *dataDir) (*actors.System, *faultDoor) {
	t.Helper()
	return doorThatTells(t, data, nil)
}

// doorThatTells is doorAt with a listener for what the system says, which hears of a fault before its request is answered.
func doorThatTells(t *testing.T, data *dataDir, events actors.EventSink) (*actors.System, *faultDoor) {
	t.Helper()
	system := actors.NewSystem(actors.Options{Clock: actors.NewManualClock(time.Unix(1_700_000_000, 0)), Events: events})
	l, err := listenFaults(data)
	if err != nil {
		t.Fatal(err)
	}
	path := data.file(faultSocket)
	door := openFaultDoor(t.Context(), l, func() { _ = os.Remove(path) }, system.Faults(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		door.close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := system.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return system, door
}

// knock is a client of a door.
type knock struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
}

func knockAt(t *testing.T, dir string) *knock {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(dir, faultSocket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &knock{t, conn, bufio.NewReader(conn)}
}

func (k *knock) ask(line string) string {
	k.t.Helper()
	if _, err := io.WriteString(k.conn, line+"\n"); err != nil {
		k.t.Fatal(err)
	}
	return k.hear()
}

func (k *knock) hear() string {
	k.t.Helper()
	answer, err := k.lines.ReadString('\n')
	if err != nil {
		k.t.Fatalf("no answer: %v", err)
	}
	return strings.TrimSuffix(answer, "\n")
}

// ended reports that the door has closed the connection.
func (k *knock) ended() bool {
	_, err := k.lines.ReadByte()
	var network net.Error
	return err != nil && !(errors.As(err, &network) && network.Timeout())
}

// letter and idler: an actor that only has a mailbox.
type letter struct{}

type idler struct{}

func (idler) Receive(*actors.Turn) {}

func idle(t *testing.T, s *actors.System, path, kind, tenant string) actors.Ref[*letter] {
	t.Helper()
	ref, err := actors.Spawn(s, actors.Spec[*letter]{
		Name: path, Kind: kind, Tenant: tenant, Bounds: actors.Bounds{DataItems: 10, DataBytes: 1000}, New: func() actors.Actor { return idler{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// The same file is what felixctl's tests answer from, so that the two cannot drift apart.
func TestTheDoorSaysWhatItsTranscriptSays(t *testing.T) {
	data := scratch(t)
	system, _ := doorAt(t, data)
	idle(t, system, "sessions", "listener", "")
	idle(t, system, "shards", "host", "")
	shard := idle(t, system, "shards/3", "shard", "t1")
	end := system.Watch(shard)
	text, err := os.ReadFile(filepath.Join("testdata", "fault_door.txt"))
	if err != nil {
		t.Fatal(err)
	}
	k, asked, slowed := knockAt(t, data.path), 0, false
	var got string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if request, ok := strings.CutPrefix(line, "> "); ok {
			got = k.ask(request)
			asked++
		} else if want, ok := strings.CutPrefix(line, "< "); ok && got != want {
			t.Errorf("request %d\n got %s\nwant %s", asked, got, want)
		}
		if !slowed && strings.Contains(got, `"slow"`) {
			slowed = true
			if err := errors.Join(shard.TrySend(&letter{}, 30), shard.TrySend(&letter{}, 30)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if asked < 15 {
		t.Fatalf("the transcript has %d requests", asked)
	}
	if x := <-end; x.Panic == nil || !errors.Is(x.Panic.Value.(error), actors.ErrInjected) {
		t.Errorf("the last request crashed nothing: %+v", x)
	}
}

func TestALineThatIsTooLongIsRefusedAndEndsTheConnection(t *testing.T) {
	data := scratch(t)
	system, _ := doorAt(t, data)
	idle(t, system, "a", "a", "")
	k := knockAt(t, data.path)
	fits := `{"do":"heal","actor":"a"}`
	if got := k.ask(fits + strings.Repeat(" ", faultLineMax-1-len(fits))); got != fits {
		t.Errorf("a line of 4096 bytes: %s", got)
	}
	if got := k.ask(strings.Repeat("x", faultLineMax)); !strings.Contains(got, `"error":"too_long"`) || !k.ended() {
		t.Errorf("a line of 4097 bytes: %s", got)
	}
	if got := knockAt(t, data.path).ask("\x00\xff"); !strings.Contains(got, `"error":"invalid_request"`) {
		t.Errorf("a line that is no JSON: %s", got)
	}
}

func TestALastLineNeedsNoNewline(t *testing.T) {
	data := scratch(t)
	system, _ := doorAt(t, data)
	idle(t, system, "a", "a", "")
	k := knockAt(t, data.path)
	if _, err := io.WriteString(k.conn, `{"do":"heal","actor":"a"}`); err != nil {
		t.Fatal(err)
	}
	if err := k.conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := k.hear(); got != `{"do":"heal","actor":"a"}` || !k.ended() {
		t.Errorf("got %s", got)
	}
}

func TestAFifthConnectionIsTurnedAwayAndAPlaceComesBack(t *testing.T) {
	data := scratch(t)
	_, door := doorAt(t, data)
	var inside []*knock
	for range faultConnsMax {
		k := knockAt(t, data.path)
		k.ask(`{"do":"ls"}`)
		inside = append(inside, k)
	}
	for range 100 {
		fifth := knockAt(t, data.path)
		if got := fifth.hear(); !strings.Contains(got, `"error":"busy"`) || !fifth.ended() {
			t.Fatalf("got %s", got)
		}
		_ = fifth.conn.Close()
	}
	door.mu.Lock()
	if len(door.conns) != faultConnsMax {
		t.Errorf("the door keeps %d connections", len(door.conns))
	}
	door.mu.Unlock()
	_ = inside[0].conn.Close()
	door.slots <- struct{}{} // waits for the place
	<-door.slots
	if got := knockAt(t, data.path).ask(`{"do":"ls"}`); got != `{"actors":[]}` {
		t.Errorf("got %s", got)
	}
}

func TestTheSocketIsTheOwnersAloneAndGoesWhenTheDoorCloses(t *testing.T) {
	data := scratch(t)
	_, door := doorAt(t, data)
	info, err := os.Lstat(data.file(faultSocket))
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	k := knockAt(t, data.path)
	k.ask(`{"do":"ls"}`)
	door.close()
	door.close()
	if !k.ended() {
		t.Error("a connection goes on after the door was closed")
	}
	for _, name := range []string{faultSocket, faultCradle} {
		if _, err := os.Lstat(data.file(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}

// holdingSink holds up the one fault it hears of.
type holdingSink struct{ heard, goOn chan struct{} }

func (s holdingSink) Emit(e actors.Event) {
	if _, ok := e.(actors.FaultInjected); ok {
		close(s.heard)
		<-s.goOn
	}
}

// A crash of what the node cannot be without closes the door, maybe sooner than its own request is answered.
func TestWhatWasAskedIsAnsweredThoughTheDoorCloses(t *testing.T) {
	data := scratch(t)
	asked, goOn := make(chan struct{}), make(chan struct{})
	system, door := doorThatTells(t, data, holdingSink{asked, goOn})
	idle(t, system, "shards", "host", "")
	k := knockAt(t, data.path)
	request := `{"do":"heal","actor":"shards"}`
	if _, err := io.WriteString(k.conn, request+"\n"); err != nil {
		t.Fatal(err)
	}
	<-asked
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		door.close()
	}()
	for begun := false; !begun; {
		door.mu.Lock()
		begun = door.closed
		door.mu.Unlock()
	}
	close(goOn)
	if got := k.hear(); got != request || !k.ended() {
		t.Errorf("got %s", got)
	}
	<-closed
}

func TestAClientThatTakesNoAnswersDoesNotHoldUpTheEndOfTheDoor(t *testing.T) {
	data := scratch(t)
	_, door := doorAt(t, data)
	k := knockAt(t, data.path)
	if err := k.conn.SetDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for line := []byte(strings.Repeat("{}\n", 1000)); ; { // until its own requests find no room, as the answers to them do not
		if _, err := k.conn.Write(line); err != nil {
			break
		}
	}
	begun := time.Now()
	door.close()
	if took := time.Since(begun); took >= faultWrite {
		t.Errorf("the end took %v", took)
	}
}

func TestASocketOfACrashedDaemonIsReplacedAndNothingElseIs(t *testing.T) {
	data := scratch(t)
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: data.file(faultSocket), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false) // a crash does not clean up
	if err := errors.Join(old.Close(), os.Mkdir(data.file(faultCradle), 0o755), os.WriteFile(filepath.Join(data.file(faultCradle), "s"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	doorAt(t, data)
	if got := knockAt(t, data.path).ask(`{"do":"ls"}`); got != `{"actors":[]}` {
		t.Errorf("got %s", got)
	}

	other := scratch(t)
	if err := os.WriteFile(other.file(faultSocket), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := listenFaults(other); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a file under the socket's name was taken: %v, %v", l, err)
	}
	if text, err := os.ReadFile(other.file(faultSocket)); err != nil || string(text) != "mine" {
		t.Errorf("the file is changed: %q, %v", text, err)
	}
	long := &dataDir{path: filepath.Join(other.path, strings.Repeat("x", 200))}
	if _, err := listenFaults(long); err == nil || !strings.Contains(err.Error(), "shorter --data-dir") {
		t.Errorf("a path that is no name of a socket: %v", err)
	}
}

// lingerer takes its time to stop.
type lingerer struct{ stopping, leave chan struct{} }

func (l lingerer) Receive(t *actors.Turn) {
	if t.Lifecycle() == actors.Stopping {
		close(l.stopping)
		<-l.leave
	}
}

func TestAnActorThatStopsIsShownAndLeftAlone(t *testing.T) {
	data := scratch(t)
	system, _ := doorAt(t, data)
	l := lingerer{make(chan struct{}), make(chan struct{})}
	ref, err := actors.Spawn(system, actors.Spec[*letter]{Name: "a", Kind: "k", New: func() actors.Actor { return l }})
	if err != nil {
		t.Fatal(err)
	}
	end := system.Watch(ref)
	ref.Stop()
	<-l.stopping
	k := knockAt(t, data.path)
	if got := k.ask(`{"do":"ls"}`); got != `{"actors":[{"actor":"a","kind":"k","items":0,"bytes":0,"stopping":true}]}` {
		t.Error(got)
	}
	if got := k.ask(`{"do":"crash","actor":"a"}`); !strings.Contains(got, `"error":"actor_stopped"`) {
		t.Error(got)
	}
	close(l.leave)
	if x := <-end; x.Reason != actors.Orderly {
		t.Errorf("%+v", x)
	}
}
