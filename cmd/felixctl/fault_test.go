package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// transcript is what the daemon's own test replays against a real door: requests, in a form of their own, and their answers.
func transcript(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "felixd", "testdata", "fault_door.txt"))
	if err != nil {
		t.Fatal(err)
	}
	answers, request := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if r, ok := strings.CutPrefix(line, "> "); ok {
			request = canonical(r)
		} else if a, ok := strings.CutPrefix(line, "< "); ok {
			answers[request] = a
		}
	}
	return answers
}

// canonical is a request with its members in order.
func canonical(line string) string {
	var members map[string]any
	if json.Unmarshal([]byte(line), &members) != nil {
		return line
	}
	out, err := json.Marshal(members)
	if err != nil {
		return line
	}
	return string(out)
}

// fakeDoor answers each line with what answer says, and ends the connection when it says nothing.
func fakeDoor(t *testing.T, path string, answer func(request string) string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = conn.Close() }()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					reply := answer(canonical(lines.Text()))
					if _, err := io.WriteString(conn, reply); reply == "" || err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
}

// newFaultCLI is a felixctl in a folder with a short path, for the name of a socket is bounded.
func newFaultCLI(t *testing.T) (c *cli, socket string) {
	t.Helper()
	c = newCLI(t)
	dir, err := os.MkdirTemp("", "felix")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c.sys.workDir = dir
	return c, filepath.Join(dir, "felix-data", "fault.sock")
}

// behindDoor is a felixctl whose door answers as the transcript does.
func behindDoor(t *testing.T) *cli {
	t.Helper()
	c, socket := newFaultCLI(t)
	answers := transcript(t)
	fakeDoor(t, socket, func(request string) string {
		a, ok := answers[request]
		if !ok {
			t.Errorf("the transcript does not know %s", request)
		}
		return a + "\n"
	})
	return c
}

func TestFaultsAreInjectedAndTold(t *testing.T) {
	c := behindDoor(t)
	for _, x := range []struct{ args, json, text string }{
		{"pause shards --for 4200ms", `{"do":"pause","actor":"shards"}`, "paused shards for 4.2s"},
		{"slow shards/3 --by 10ms --for 30s", `{"do":"slow","actor":"shards/3"}`, "slowed shards/3 by 10ms a turn for 30s"},
		{"heal shards", `{"do":"heal","actor":"shards"}`, "healed shards"},
		{"crash shards/3", `{"do":"crash","actor":"shards/3"}`, "crashed shards/3"},
	} {
		args := append([]string{"fault"}, strings.Fields(x.args)...)
		c.sys.stdoutTerminal = false
		wantText(t, c.run(exitOK, args...), x.json+"\n")
		c.sys.stdoutTerminal = true
		wantText(t, c.run(exitOK, args...), x.text+"\n")
	}
}

func TestActorsAreATableOnATerminalAndJSONElsewhere(t *testing.T) {
	c := behindDoor(t)
	wantContains(t, c.run(exitOK, "fault", "ls"), `{"items":[{"actor":"sessions","kind":"listener","items":0,"bytes":0},`, `"slow_for_ms":30000}]}`)
	table := c.onTerminal().run(exitOK, "fault", "ls")
	wantContains(t, table, "ACTOR     KIND      TENANT  QUEUED  BYTES  STATE\n", "paused, 4.2s left\n", "slowed by 10ms a turn, 30s left\n")
	if n := strings.Count(table, "\n"); n != 4 {
		t.Errorf("%d lines, want a head and three actors:\n%s", n, table)
	}
	wantContains(t, c.run(exitOK, "__complete", "fault", "crash", ""), "sessions\nshards\nshards/3\n")
}

func TestEveryPageOfActorsIsRead(t *testing.T) {
	c, socket := newFaultCLI(t)
	pages := map[string]string{
		`{"do":"ls"}`:             `{"actors":[{"actor":"a"},{"actor":"b\u202e","stopping":true}],"next":"b"}`,
		`{"after":"b","do":"ls"}`: `{"actors":[{"actor":"c"}],"next":"c"}`,
		`{"after":"c","do":"ls"}`: `{"actors":[]}`,
	}
	fakeDoor(t, socket, func(request string) string { return pages[request] + "\n" })
	wantText(t, c.run(exitOK, "fault", "ls"), `{"items":[{"actor":"a"},{"actor":"b\u202e","stopping":true},{"actor":"c"}]}`+"\n")
	wantContains(t, c.onTerminal().run(exitOK, "fault", "ls"), `b\u202e`, "stopping") // no name turns the table around

	backwards, at := newFaultCLI(t)
	fakeDoor(t, at, func(string) string { return `{"actors":[],"next":"b"}` + "\n" })
	backwards.run(exitOther, "fault", "ls")
	wantContains(t, backwards.stderr.String(), "goes back")
}

func TestRefusalsOfTheDoorHaveTheirExitCodes(t *testing.T) {
	c := behindDoor(t)
	c.run(exitNotFound, "fault", "pause", "shard/3", "--for", "5s")
	wantContains(t, c.stderr.String(), `did you mean "shards/3"?`)
	c.run(exitNotFound, "fault", "crash", "nobody", "--json")
	wantContains(t, c.stderr.String(), `"exit":5`)

	busy, socket := newFaultCLI(t)
	for code, exit := range map[string]int{"busy": exitRefused, "actor_stopped": exitRefused, "invalid_request": exitRefused, "of_the_future": exitRefused} {
		other := socket + code[:1]
		fakeDoor(t, other, func(string) string { return fmt.Sprintf(`{"error":%q,"actor":"a","message":"why"}`+"\n", code) })
		busy.run(exit, "fault", "crash", "a", "--fault-socket", other)
		wantContains(t, busy.stderr.String(), code+": why")
	}
}

func TestWithoutADoorFelixctlSaysHowToOpenOne(t *testing.T) {
	c, socket := newFaultCLI(t)
	c.run(exitUnreachable, "fault", "ls")
	wantContains(t, c.stderr.String(), "there is no fault door at "+socket, "start felixd with --fault-door")

	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c.run(exitUnreachable, "fault", "crash", "a")
	wantContains(t, c.stderr.String(), "nobody is behind the fault door", "start felixd with --fault-door")
	wantContains(t, c.run(exitOK, "__complete", "fault", "crash", ""), ":4\n") // nothing to complete is no error
	wantContains(t, noFaultDoor("s", os.ErrPermission).Error(), "only the user who runs felixd")
	wantContains(t, noFaultDoor("s", errors.New("other")).Error(), "reach the fault door")
}

func TestADoorThatClosesOrSpeaksNonsenseIsAnError(t *testing.T) {
	c, socket := newFaultCLI(t)
	for name, x := range map[string]struct {
		answer string
		exit   int
	}{"closes": {"", exitUnreachable}, "nonsense": {"hello\n", exitOther}, "shape": {`{"actors":3}` + "\n", exitOther}, "endless": {strings.Repeat("x", faultAnswerMax+1), exitOther}} {
		other := socket + name[:1]
		fakeDoor(t, other, func(string) string { return x.answer })
		c.run(x.exit, "fault", "ls", "--fault-socket", other)
	}
}

func TestTheDoorIsFoundBesideTheContextFile(t *testing.T) {
	c, _ := newFaultCLI(t)
	elsewhere := filepath.Join(c.sys.workDir, "d")
	asked := make(chan string, 10)
	fakeDoor(t, filepath.Join(elsewhere, "fault.sock"), func(string) string { asked <- "context"; return `{"actors":[]}` + "\n" })
	fakeDoor(t, filepath.Join(c.sys.workDir, "s"), func(string) string { asked <- "socket"; return `{"actors":[]}` + "\n" })
	context, socket := filepath.Join(elsewhere, "dev.json"), filepath.Join(c.sys.workDir, "s")
	env := map[string]string{}
	c.sys.getenv = func(name string) string { return env[name] }
	for _, x := range []struct {
		env  string
		args []string
		want string
	}{
		{"", []string{"--context-file", context}, "context"},
		{envContextFile + "=" + context, nil, "context"},
		{envContextFile + "=" + context, []string{"--fault-socket", socket}, "socket"},
		{envFaultSocket + "=" + socket, []string{"--context-file", context}, "socket"},
	} {
		name, value, _ := strings.Cut(x.env, "=")
		env = map[string]string{name: value}
		c.run(exitOK, append([]string{"fault", "ls"}, x.args...)...)
		wantText(t, <-asked, x.want)
	}
}

func TestTimesThatTheDoorWouldRefuseAreMistakesOfUsage(t *testing.T) {
	c, _ := newFaultCLI(t) // no door: nothing is sent
	for _, args := range []string{
		"pause a", "pause a --for 0s", "pause a --for 500us", "pause a --for -1s", "pause a --for 10m1ms", "pause a --for 1500us", "pause a --for soon", "pause --for 1s",
		"slow a --for 1s", "slow a --by 1ms", "slow a --by 0s --for 1s", "slow a --by 1s --for 11m", "crash", "crash a b", "heal", "explode a", "ls a", "",
	} {
		c.run(exitUsage, append([]string{"fault"}, strings.Fields(args)...)...)
	}
	wantContains(t, c.stderr.String(), "--for is 10m0.001s; use 1ms to 10m0s, in whole milliseconds")
}
