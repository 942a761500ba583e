package shardcore

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

var rewrite = flag.Bool("rewrite", false, "write what the core says into testdata; read the diff and keep it if you can explain it")

// A transcript is a story: each line is a command to the core, and below it, indented, what it answered. Commands:
//
//	open GENERATION          recovered TAIL [BASE] [counters=TAIL]    openfailed REASON [damaged]
//	write NAME RECORDS BYTES [WISH...]                persisted SEQ | persistedto SEQ
//	writefailed SEQ REASON [full]                     poisoned REASON | trimmed BASE
//	released END             blocking (before anything else: the core withholds answers)
//	stalled | back | damaged REASON | drain | wake    take
//	logopened TAIL           (that of the counters, after the others)       logfailed REASON log=counters
//	number                   booked (before anything else: what the core tells its book is in the transcript)
//	restart GENERATION (a new core that recovers what the old one would have put into its snapshot; it is opened, and saving)
//
// Writes and the completions, failures and trims below them may end in log=counters. Wishes of a write are producer=ID:SEQUENCE, fill=BYTE
// (other content of the same size), if=OFFSET, early (answered at the claim), commit, fold and judge=VERDICT,VERDICT...: what its judge
// says the first time, the second and so on. A verdict is append, again, done, done:UNTIL, refuse or refuse:UNTIL.
//
//	at DURATION              (moves the clock)
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
			got := play(t, string(text))
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

func play(t *testing.T, script string) string {
	var out strings.Builder
	opts := DefaultOptions()
	opts.UnsyncedBytes, opts.HeldWrites, opts.Duplicates = 4000, 3, 2
	c := New(opts)
	judging := func(text string) { out.WriteString(text) }
	at := At{Wall: time.UnixMilli(1_000_000)}
	for _, line := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, log := logOf(t, line)
		number := func(i int) uint64 {
			n, err := strconv.ParseUint(word[i], 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return n
		}
		switch word[0] {
		case "at":
			d, err := time.ParseDuration(word[1])
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			at = At{Wall: time.UnixMilli(1_000_000).Add(d), Mono: d}
		case "open":
			c.Step(at, Open{Generation: id.Generation(number(1))})
		case "recovered":
			in := Recovered{Tails: MainTail(id.Offset(number(1)))}
			for i, text := range word[2:] {
				if counters, ok := strings.CutPrefix(text, "counters="); ok {
					word[2+i] = counters
					in.Tails[LogCounters] = id.Offset(number(2 + i))
				} else {
					in.Base = id.Offset(number(2 + i))
				}
			}
			c.Step(at, in)
		case "logopened":
			c.Step(at, LogOpened{Log: LogCounters, Tail: id.Offset(number(1))})
		case "restart":
			asOf, body := c.ProducersSnapshot()
			producers, err := DecodeProducers(body, asOf)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			in := Recovered{Tails: MainTail(asOf), Base: c.log(LogMain).base, Producers: producers}
			c = New(opts)
			c.Step(at, Open{Generation: id.Generation(number(1))})
			c.Step(at, in)
		case "openfailed":
			c.Step(at, OpenFailed{Reason: word[1], Damaged: len(word) > 2})
		case "write":
			w := wish(t, line, word, judging)
			w.Log = log
			c.Step(at, w)
		case "persisted":
			c.Step(at, Persisted{Log: log, Seq: number(1)})
		case "persistedto":
			c.Step(at, PersistedTo{Log: log, Seq: number(1)})
		case "number":
			fmt.Fprintf(&out, "  number %d\n", c.Number())
		case "booked":
			opts.Book = toldBook{tell: judging}
			c = New(opts)
		case "logfailed":
			c.Step(at, LogFailed{Log: log, Reason: word[1]})
		case "poisoned":
			c.Step(at, Poisoned{Reason: word[1]})
		case "trimmed":
			c.Step(at, Trimmed{Log: log, Base: id.Offset(number(1))})
		case "released":
			c.Step(at, Released{End: id.Offset(number(1))})
		case "blocking":
			opts.Blocking = true
			c = New(opts)
		case "writefailed":
			c.Step(at, WriteFailed{Log: log, Seq: number(1), Reason: word[2], Full: len(word) > 3})
		case "stalled":
			c.Step(at, DiskStalled{})
		case "back":
			c.Step(at, DiskBack{})
		case "damaged":
			c.Step(at, Damaged{Reason: word[1]})
		case "drain":
			c.Step(at, Drain{})
		case "wake":
			c.Step(at, Wake{})
		case "take":
			for _, e := range c.Take() {
				out.WriteString(tell(e))
			}
		default:
			t.Fatalf("unknown command %q", line)
		}
	}
	return out.String()
}

// logOf is what a line says, and the log it says it of.
func logOf(t *testing.T, line string) (word []string, log Log) {
	word = strings.Fields(line)
	last := len(word) - 1
	name, ok := strings.CutPrefix(word[last], "log=")
	if !ok {
		return word, LogMain
	}
	if name != "counters" {
		t.Fatalf("%q: unknown log", line)
	}
	return word[:last], LogCounters
}

// of names a log that is not the main one.
func of(log Log) string {
	return map[Log]string{LogMain: "", LogCounters: " of counters"}[log]
}

// toldBook writes down what a core tells its book.
type toldBook struct{ tell func(string) }

func (b toldBook) Claimed(log Log, x *batch.Batch) {
	b.tell(fmt.Sprintf("  book: [%d,%d)%s is claimed\n", x.Base, x.End(), of(log)))
}
func (b toldBook) Void(log Log, from id.Offset) {
	b.tell(fmt.Sprintf("  book: void from %d%s\n", from, of(log)))
}

// scripted is a judge that says one verdict after the other, the last one again and again.
func scripted(t *testing.T, w *Write, script string, size int, tell func(string)) func(id.Offset, uint64) Verdict {
	verdicts := strings.Split(script, ",")
	return func(base id.Offset, _ uint64) Verdict {
		text := verdicts[0]
		if len(verdicts) > 1 {
			verdicts = verdicts[1:]
		}
		tell(fmt.Sprintf("  judge %v at %d: %s\n", w.Reply, base, text))
		what, until, _ := strings.Cut(text, ":")
		v := Verdict{Append: what == "append", Again: what == "again"}
		if until != "" {
			n, err := strconv.ParseUint(until, 10, 64)
			if err != nil {
				t.Fatalf("verdict %q: %v", text, err)
			}
			v.Until = id.Offset(n)
		}
		switch what {
		case "append":
			w.Batch.Count, w.Batch.Body = 1, make([]byte, size)
		case "refuse":
			f := wire.Refuse(wire.CodeLimitExceeded, "no")
			v.Refusal = &f
		case "again", "done":
		default:
			t.Fatalf("unknown verdict %q", text)
		}
		return v
	}
}

// wish is the write of a line.
func wish(t *testing.T, line string, word []string, judging func(string)) *Write {
	b := &batch.Batch{Kind: batch.Records}
	w := &Write{Reply: word[1], Batch: b}
	size, fill := 0, byte(0)
	read := func(text, format string, into ...any) {
		if n, err := fmt.Sscanf(text, format, into...); err != nil || n != len(into) {
			t.Fatalf("%q: %q: %v", line, text, err)
		}
	}
	read(word[2], "%d", &b.Count)
	read(word[3], "%d", &size)
	for _, text := range word[4:] {
		switch name, _, _ := strings.Cut(text, "="); name {
		case "producer":
			read(text, "producer=%d:%d", &b.ProducerID, &b.Sequence)
		case "fill":
			read(text, "fill=%d", &fill)
		case "if":
			read(text, "if=%d", &w.Expected)
			w.HasExpected = true
		case "early":
			w.AtClaim = true
		case "commit":
			b.Kind = batch.Commit
		case "fold":
			w.Fold = true
		case "judge":
			w.Judge = scripted(t, w, strings.TrimPrefix(text, "judge="), size, judging)
		default:
			t.Fatalf("%q: unknown wish %q", line, text)
		}
	}
	if b.PayloadBytes = size; w.Judge == nil {
		b.Body = bytes.Repeat([]byte{fill}, size)
	}
	return w
}

// tellAnswer writes one answer.
func tellAnswer(a Answer) string {
	switch {
	case a.Refusal != nil:
		return fmt.Sprintf("  answer %v refused %s %s %s\n", a.Reply, a.Refusal.Code, a.Refusal.Retry, a.Refusal.Reason)
	case a.Refused != nil && a.Refused.Kind == wire.RefusedSequenceGap:
		return fmt.Sprintf("  answer %v not appended: sequence_gap, expected %d\n", a.Reply, a.Refused.Expected)
	case a.Refused != nil && a.Refused.Kind == wire.RefusedOffsetMismatch:
		return fmt.Sprintf("  answer %v not appended: offset_mismatch, tail %d\n", a.Reply, a.Refused.Tail)
	case a.Refused != nil:
		return fmt.Sprintf("  answer %v not appended: %s\n", a.Reply, a.Refused.Kind)
	case a.NoOffset:
		return fmt.Sprintf("  answer %v claimed\n", a.Reply)
	case a.Again:
		return fmt.Sprintf("  answer %v given back\n", a.Reply)
	case a.Unwritten:
		return fmt.Sprintf("  answer %v done without a record\n", a.Reply)
	}
	return fmt.Sprintf("  answer %v done at %d\n", a.Reply, a.Offset)
}

// tell writes an effect as lines of a transcript.
func tell(e Effect) string {
	switch e := e.(type) {
	case Append:
		var names []string
		for _, b := range e.Batches {
			names = append(names, fmt.Sprintf("[%d,%d)", b.Base, b.End()))
		}
		if len(names) == 0 {
			names = []string{"void"}
		}
		return fmt.Sprintf("  append %d %s%s\n", e.Seq, strings.Join(names, " "), of(e.Log))
	case Save:
		return fmt.Sprintf("  save %d generation %d\n", e.Seq, e.Generation)
	case Fold:
		var out strings.Builder
		for _, b := range e.Batches {
			fmt.Fprintf(&out, "  fold [%d,%d)%s\n", b.Base, b.End(), of(e.Log))
		}
		return out.String()
	case *Answers:
		var out strings.Builder
		for _, a := range e.List {
			out.WriteString(tellAnswer(a))
		}
		return out.String()
	case Serving:
		if e.Shows != e.On {
			return fmt.Sprintf("  serving{On:%v}, but it shows what is committed\n", e.On)
		}
		return fmt.Sprintf("  serving{On:%v}\n", e.On)
	case Readable:
		return fmt.Sprintf("  readable %d%s\n", e.End, of(e.Log))
	case RoleChanged:
		return fmt.Sprintf("  role %s -> %s\n", e.From, e.To)
	case Deadline:
		return fmt.Sprintf("  deadline %s\n", e.At)
	default:
		return fmt.Sprintf("  %s%+v\n", strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "shardcore.")), e)
	}
}
