package crash

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire/id"
)

// line is record n as a line of 256 bytes.
func line(n uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n*0x9e3779b97f4a7c15) // so that neighbours differ everywhere
	text := hex.EncodeToString(binary.BigEndian.AppendUint64(nil, n)) + hex.EncodeToString(b[:])
	return strings.Repeat(text, recordBytes/len(text))
}

// piped is felixctl pub reading lines, and what it says of them.
type piped struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	said    *testkit.Tail
	offsets []id.Offset // of the records, in their order
	heard   atomic.Int64
	done    chan error
}

func pipe(t testing.TB, d *daemon, args ...string) *piped {
	t.Helper()
	p := &piped{cmd: d.Ctl(args...), said: &testkit.Tail{}, done: make(chan error, 1)}
	p.cmd.Stderr = p.said
	p.in = must(p.cmd.StdinPipe())(t)
	out := must(p.cmd.StdoutPipe())(t)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		lines := bufio.NewScanner(out)
		var wrong error
		for lines.Scan() {
			var receipt struct {
				Record *uint64
				Offset *id.Offset
			}
			err := json.Unmarshal(lines.Bytes(), &receipt)
			if err == nil && (receipt.Record == nil || receipt.Offset == nil || *receipt.Record != uint64(len(p.offsets))) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil && wrong == nil {
				wrong = err
			}
			if wrong == nil {
				p.offsets = append(p.offsets, *receipt.Offset)
				p.heard.Store(int64(len(p.offsets)))
			}
		}
		if err := p.cmd.Wait(); err != nil {
			wrong = err
		}
		p.done <- wrong
	}()
	return p
}

// What felixctl says is acknowledged is in the stream at its offset, each line once, however often the daemon was killed meanwhile.
//
// mission 371, matrix A28, matrix J1
func TestLinesThatFelixctlPublishesLandOnceThroughEveryKill(t *testing.T) {
	kills, records := size("killed_daemons"), size("piped_records")
	d := newDaemon(t)
	d.CreateStream("lines", 1)
	p := pipe(t, d, "pub", "lines", "-", "--idempotent", "--batch", "20", "--json")
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	w := bufio.NewWriter(p.in)
	sent := 0
	give := func(until int) {
		for ; sent < until; sent++ {
			_, _ = w.WriteString(line(uint64(sent)) + "\n") // an error is that of the command, which says it itself
		}
		_ = w.Flush()
	}
	for n := range kills {
		already := p.heard.Load()
		give(records * (n + 1) / (kills + 1))
		if !testkit.Eventually(t, "a line is acknowledged after a restart", func() bool { return p.heard.Load() > already || len(p.done) > 0 }) {
			break
		}
		testkit.After(time.Duration(r.IntN(20)) * time.Millisecond)
		d.Kill()
		d.Start()
	}
	give(records)
	_ = p.in.Close()
	select {
	case err := <-p.done:
		if err != nil {
			t.Fatalf("felixctl: %v\n%s", err, p.said)
		}
	case <-time.After(testkit.Patience):
		_ = p.cmd.Process.Kill()
		t.Fatalf("felixctl does not end; %d of %d lines are acknowledged\n%s", p.heard.Load(), records, p.said)
	}
	checkLines(t, d, p.offsets, records)
	t.Logf("%d lines, %d kills", records, kills)
}

// checkLines reads the stream: every line once, at the offset that was told for it.
func checkLines(t testing.TB, d *daemon, offsets []id.Offset, records int) {
	t.Helper()
	if len(offsets) != records {
		t.Fatalf("%d of %d lines are acknowledged", len(offsets), records)
	}
	c, next := d.Connect(), id.Offset(0)
	for r, err := range c.ReadRange(context.Background(), namespace, "lines", client.ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if int(next) >= records || r.Offset != next || offsets[next] != next || string(r.Payload) != line(uint64(next)) {
			t.Fatalf("offset %d where %d was due, content right: %t", r.Offset, next, string(r.Payload) == line(uint64(next)))
		}
		next++
	}
	if int(next) != records {
		t.Errorf("the stream ends at %d of %d", next, records)
	}
}
