package groupcore

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

var rewrite = flag.Bool("rewrite", false, "write what the core says into testdata; read the diff and keep it if you can explain it")

// A transcript is a story: each line is a command, and below it, indented, what the core answered. The group has room for 4 records in
// flight and gives up after 3 failures; claims stand for 10 s. Words after NAME are options, OFFSET and so on are numbers.
//
//	new BASE END | at DURATION | wake | take
//	poll NAME conn=N max=N [wait=DURATION] [member=M] [reclaim] [visible=DURATION]
//	ack NAME OFFSET | giveup NAME OFFSET | discard NAME OFFSET | redrive NAME OFFSET | list NAME | describe NAME | remove NAME
//	nack NAME OFFSET conn=N [attempts=N] [delay=DURATION] | extend NAME OFFSET conn=N attempts=N by=DURATION
//	seek NAME OFFSET|earliest|latest [new]
//	read POLL FOUND (one letter for each record: y there is one, n there is none) | readfailed POLL
//	tail END COMMITTED | trimmed BASE | gone CONN | persisted SEQ | failed SEQ REASON | stop
//	restart [lost=LOG...] (what was on its way is stored, unless that log is named)
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := (&stage{t: t}).play(string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Fatalf("%s: the core says\n%s", file, got)
			}
		})
	}
}

// stage plays one transcript.
type stage struct {
	t     *testing.T
	s     *shell
	line  string
	word  []string
	names []string // of requests, by token
}

func (p *stage) play(script string) string {
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line + "\n")
		if p.line, p.word = line, strings.Fields(line); line == "" || line[0] == '#' {
			continue
		}
		p.command(&out)
	}
	return out.String()
}

func (p *stage) number(i int) uint64 {
	if i >= len(p.word) {
		p.t.Fatalf("%q: too short", p.line)
	}
	n, err := strconv.ParseUint(p.word[i], 10, 64)
	if err != nil {
		p.t.Fatalf("%q: %v", p.line, err)
	}
	return n
}

// option is what is said behind name=, "" if nothing is.
func (p *stage) option(name string) string {
	for _, w := range p.word {
		if value, ok := strings.CutPrefix(w, name+"="); ok {
			return value
		}
	}
	return ""
}

func (p *stage) count(name string) uint64 {
	n, err := strconv.ParseUint(max(p.option(name), "0"), 10, 64)
	if err != nil {
		p.t.Fatalf("%q: %v", p.line, err)
	}
	return n
}

func (p *stage) time(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		p.t.Fatalf("%q: %v", p.line, err)
	}
	return d
}

func (p *stage) says(word string) bool { return strings.Contains(" "+p.line+" ", " "+word+" ") }

func (p *stage) ask() Ask {
	p.names = append(p.names, p.word[1])
	return Ask{Token: uint64(len(p.names) - 1)}
}

func (p *stage) command(out *strings.Builder) {
	switch p.word[0] {
	case "new":
		o := small()
		o.MaxInFlight, o.MaxAttempts, o.MaxPolls, o.MaxDeadLetters, o.MaxUnwritten = 4, 3, 5, 2, 6
		p.s = newShell(o, int(p.number(2)))
		p.s.base, p.s.patient = id.Offset(p.number(1)), true
		p.begin()
	case "restart":
		lost := p.option("lost")
		for i, w := range p.s.writes {
			if w != nil && !strings.Contains(lost, [...]string{"cursors", "dead"}[i]) {
				p.s.fold(w)
			}
		}
		p.begin()
	case "at":
		p.s.now = p.time(p.word[1])
	case "take":
		for _, e := range p.s.core.Take() {
			out.WriteString(p.tell(e))
		}
	default:
		p.s.core.Step(p.s.now, p.input())
	}
	if err := p.s.core.CheckAll(); err != nil {
		p.t.Fatalf("%q: %v", p.line, err)
	}
}

// begin makes a core of what is stored. What it does at once is told by the next take.
func (p *stage) begin() {
	st := NewState(p.s.opts.Group)
	for i := range p.s.tables {
		for k, v := range p.s.tables[i] {
			if err := st.Add([]byte(k), v); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	p.s.writes = [logCount]*Persist{}
	p.s.core = New(p.s.opts, p.s.now, Loaded{State: st, Base: p.s.base, Tail: Tail{End: p.s.end, Committed: p.s.end}})
}

func (p *stage) input() Input {
	conn, attempts := Conn(p.count("conn")), uint32(p.count("attempts"))
	switch p.word[0] {
	case "poll":
		return &Poll{Ask: p.ask(), Conn: conn, Max: uint32(p.count("max")), Wait: p.time(p.option("wait")), Member: p.option("member"),
			Reclaim: p.says("reclaim"), Visibility: p.time(p.option("visible"))}
	case "ack":
		return &Ack{Ask: p.ask(), Offset: id.Offset(p.number(2))}
	case "nack":
		return Nack{Ask: p.ask(), Offset: id.Offset(p.number(2)), Conn: conn, Attempts: attempts, HasDelay: p.option("delay") != "", Delay: p.time(p.option("delay"))}
	case "extend":
		return Extend{Ask: p.ask(), Offset: id.Offset(p.number(2)), Conn: conn, Attempts: attempts, Extend: p.time(p.option("by"))}
	case "giveup":
		return GiveUp{Ask: p.ask(), Offset: id.Offset(p.number(2))}
	case "discard":
		return Discard{Ask: p.ask(), Offset: id.Offset(p.number(2))}
	case "redrive":
		return Redrive{Ask: p.ask(), Offset: id.Offset(p.number(2))}
	case "list":
		return ListDead{Ask: p.ask(), Max: 100}
	case "describe":
		return Describe{Ask: p.ask()}
	case "remove":
		return Remove{Ask: p.ask()}
	case "seek":
		start := wire.Start{Kind: map[string]wire.StartKind{"earliest": wire.StartEarliest, "latest": wire.StartLatest}[p.word[2]]}
		if start.Kind == wire.StartLatest && p.word[2] != "latest" {
			start = at(id.Offset(p.number(2)))
		}
		return Seek{Ask: p.ask(), Start: start, IfNew: p.says("new")}
	}
	return p.news()
}

func (p *stage) news() Input {
	switch p.word[0] {
	case "read":
		found := make([]bool, len(p.word[2]))
		for i := range found {
			found[i] = p.word[2][i] == 'y'
		}
		return Read{Poll: p.number(1), Found: found}
	case "readfailed":
		f := wire.Refuse(wire.CodeStorage, "the disk says no")
		return ReadFailed{Poll: p.number(1), Refusal: &f}
	case "tail":
		p.s.end = id.Offset(p.number(1))
		return Tail{End: p.s.end, Committed: id.Offset(p.number(2))}
	case "trimmed":
		p.s.base = id.Offset(p.number(1))
		return Trimmed{Base: p.s.base}
	case "gone":
		return Gone{Conn: Conn(p.number(1))}
	case "persisted":
		p.written(true)
		return Persisted{Seq: p.number(1)}
	case "failed":
		p.written(false)
		return Failed{Seq: p.number(1), Reason: p.word[2]}
	case "stop":
		f := wire.Refuse(wire.CodeNotLeader, "elsewhere")
		return Stop{Refusal: &f}
	case "wake":
		return Wake{}
	}
	p.t.Fatalf("unknown command %q", p.line)
	return nil
}

func (p *stage) written(ok bool) {
	for i, w := range p.s.writes {
		if w != nil && w.Seq == p.number(1) {
			if ok {
				p.s.fold(w)
			}
			p.s.writes[i] = nil
		}
	}
}

// tell writes an effect as lines of a transcript.
func (p *stage) tell(e Effect) string {
	var out strings.Builder
	switch e := e.(type) {
	case *Persist:
		p.s.writes[e.Log] = e
		fmt.Fprintf(&out, "  persist %d %s wait=%v\n", e.Seq, [...]string{"cursors", "dead"}[e.Log], e.Wait)
		p.tellRecords(&out, e.Body)
	case *Fetch:
		fmt.Fprintf(&out, "  fetch %d %v\n", e.Poll, e.Offsets)
	case *Deliver:
		fmt.Fprintf(&out, "  deliver %s [%s] of %d\n", p.names[e.Token], told(e.Records), e.Fetched)
	case *Answers:
		for _, a := range e.List {
			out.WriteString(p.tellAnswer(a))
		}
	case Deadline:
		fmt.Fprintf(&out, "  deadline %s\n", e.At)
	case Idle:
		out.WriteString("  idle\n")
	}
	return out.String()
}

func (p *stage) tellRecords(out *strings.Builder, body []byte) {
	for len(body) > 0 {
		size := int(body[2])<<8 | int(body[3])
		r, err := DecodeRecord(body[4 : 4+size])
		if err != nil {
			p.t.Fatal(err)
		}
		body = body[4+size:]
		_, e, err := DecodeKey(r.Key)
		if r.Op == Put {
			_, e, err = DecodeEntry(r.Key, r.Value)
		}
		if err != nil {
			p.t.Fatal(err)
		}
		what := ""
		switch {
		case r.Op == Delete:
			what = " deleted"
		case e.Kind == KindPosition && e.Deleted:
			what = fmt.Sprintf(" of nothing, epoch %d", e.Epoch)
		case e.Kind == KindPosition:
			what = fmt.Sprintf(" at %d, epoch %d, born %d", e.Cursor, e.Epoch, e.Born)
		case e.Kind == KindRange:
			what = fmt.Sprintf(" to %d", e.End)
		case e.Kind == KindRun:
			what = fmt.Sprintf(" of %d", e.Count)
		case e.Owed, e.Kind == KindNumber:
			what = fmt.Sprintf(" delivered %d, failed %d", e.Number, e.Failures)
		default:
			what = " listed"
		}
		fmt.Fprintf(out, "    %s %d%s\n", [...]string{"", "position", "range", "run", "number", "dead"}[e.Kind], e.Offset, what)
	}
}

func (p *stage) tellAnswer(a Answer) string {
	name := p.names[a.Token]
	switch {
	case a.Refusal != nil:
		return fmt.Sprintf("  answer %s refused %s: %s\n", name, refused(a.Refusal), a.Refusal.Message)
	case a.Visible != 0:
		return fmt.Sprintf("  answer %s visible %s\n", name, a.Visible)
	case a.Info != Info{}:
		return fmt.Sprintf("  answer %s %+v\n", name, a.Info)
	case a.Dead != nil:
		return fmt.Sprintf("  answer %s %v\n", name, a.Dead)
	case a.Moved || a.Offset != 0:
		return fmt.Sprintf("  answer %s at %d moved=%v\n", name, a.Offset, a.Moved)
	case a.Existed:
		return fmt.Sprintf("  answer %s existed\n", name)
	}
	return fmt.Sprintf("  answer %s ok\n", name)
}
