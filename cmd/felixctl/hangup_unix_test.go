//go:build unix

package main

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Neither a terminal that is closed nor a reader that goes away leaves a command of group work behind, or its record claimed.
func TestWorkLeavesNoCommandBehindWhenItsTerminalOrItsReaderGoes(t *testing.T) {
	for _, how := range []string{"hangup", "reader"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := queued(t, 2)
			c := newCLI(t).at(b, "")
			held, ended := fifo(t)
			command := `exec 3>` + held + `; echo begun; [ $FELIX_OFFSET = 0 ] && exec sleep 1000; while echo more; do sleep 0.02; done`
			cmd := exec.Command(os.Args[0])
			args := strings.Join([]string{"group", "work", "orders", "g", "--exec", command, "--concurrency", "2", "--stop-timeout", "1m"}, string(filepath.ListSeparator))
			cmd.Env, cmd.Dir = append(os.Environ(), mainArgs+"="+args), c.sys.workDir
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd.Stdout, cmd.Stderr = w, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			waited := make(chan error, 1)
			go func() { waited <- cmd.Wait() }()
			lines := bufio.NewReader(r)
			for begun := 0; begun < 2; {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if line == "begun\n" {
					begun++
				}
			}
			late := time.After(patience)
			if how == "reader" {
				_ = r.Close()
				for look := time.NewTicker(10 * time.Millisecond); len(b.Group("default/orders", 0, "g").Held) > 1; { // the other is given back
					select {
					case <-look.C:
					case err := <-waited:
						t.Fatalf("it has ended: %v", err)
					case <-late:
						t.Fatal("it goes on")
					}
				}
			} else {
				go func() { _, _ = io.Copy(io.Discard, lines) }()
			}
			_ = cmd.Process.Signal(syscall.SIGHUP)
			_ = cmd.Process.Signal(syscall.SIGINT) // and what runs is ended at once
			select {
			case <-waited:
			case <-late:
				_ = cmd.Process.Kill()
				t.Fatal("it does not end")
			}
			select {
			case <-ended:
			case <-late:
				t.Error("a command still runs")
			}
			if v := b.Group("default/orders", 0, "g"); len(v.Held) > 0 {
				t.Errorf("the group is left as %+v", v)
			}
		})
	}
}

// Output that cannot be written is told as that, and is not a broker out of reach.
func TestOutputThatCannotBeWrittenIsNoBrokerOutOfReachAndNoFaultOfTheCommand(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	if got := exitCode(full); got != exitOther {
		t.Errorf("exit code %d, want %d", got, exitOther)
	}
	for _, command := range []string{"echo x", "while echo x; do :; done", "echo x; exit 65"} {
		b := queued(t, 1)
		c := newCLI(t).at(b, "")
		c.sys.stdout = failingWriter{full}
		c.run(exitOther, "group", "work", "orders", "g", "--exec", command)
		wantContains(t, c.stderr.String(), "what commands print cannot be passed on: write /dev/stdout: no space left on device")
		if v := b.Group("default/orders", 0, "g"); len(v.Owed) != 1 || len(v.Held)+len(v.DeadLetters) > 0 {
			t.Errorf("%s: the group is left as %+v", command, v)
		}
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// A command that ended in time has ended in time, however long something in the background keeps its output open.
func TestTimeoutIsThatOfTheCommandAndNotOfWhatItLeftInTheBackground(t *testing.T) {
	t.Parallel()
	b := queued(t, 1)
	c := newCLI(t).at(b, "")
	wantText(t, c.workUntil(b, 1, "sleep 5 & echo done", "--timeout", "1800ms"), "done\n")
}
