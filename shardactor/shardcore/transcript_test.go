package shardcore

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

var rewrite = flag.Bool("rewrite", false, "write what the core says into testdata; read the diff and keep it if you can explain it")

// A transcript is a story: each line is a command to the core, and below it, indented, what it answered. Commands:
//
//	open GENERATION          recovered TAIL           openfailed REASON
//	write NAME RECORDS BYTES persisted SEQ            writefailed SEQ REASON
//	released END             blocking (before anything else: the core withholds answers)
//	stalled | back | damaged REASON | drain | wake    take
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
	opts.UnsyncedBytes, opts.HeldWrites = 4000, 3
	c := New(opts)
	at := At{Wall: time.UnixMilli(1_000_000)}
	for _, line := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word := strings.Fields(line)
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
			c.Step(at, Recovered{Tails: MainTail(id.Offset(number(1)))})
		case "openfailed":
			c.Step(at, OpenFailed{Reason: word[1]})
		case "write":
			b := &batch.Batch{Count: uint32(number(2)), Kind: batch.Records, Body: make([]byte, number(3))}
			c.Step(at, &Write{Reply: word[1], Batch: b})
		case "persisted":
			c.Step(at, Persisted{Seq: number(1)})
		case "released":
			c.Step(at, Released{End: id.Offset(number(1))})
		case "blocking":
			opts.Blocking = true
			c = New(opts)
		case "writefailed":
			c.Step(at, WriteFailed{Seq: number(1), Reason: word[2]})
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

// tell writes an effect as lines of a transcript.
func tell(e Effect) string {
	switch e := e.(type) {
	case Append:
		var names []string
		for _, b := range e.Batches {
			names = append(names, fmt.Sprintf("[%d,%d)", b.Base, b.End()))
		}
		return fmt.Sprintf("  append %d %s\n", e.Seq, strings.Join(names, " "))
	case *Answers:
		var out strings.Builder
		for _, a := range e.List {
			if a.Refusal != nil {
				fmt.Fprintf(&out, "  answer %v refused %s %s %s\n", a.Reply, a.Refusal.Code, a.Refusal.Retry, a.Refusal.Reason)
			} else {
				fmt.Fprintf(&out, "  answer %v done at %d\n", a.Reply, a.Offset)
			}
		}
		return out.String()
	case Readable:
		return fmt.Sprintf("  readable %d\n", e.End)
	case RoleChanged:
		return fmt.Sprintf("  role %s -> %s\n", e.From, e.To)
	case Deadline:
		return fmt.Sprintf("  deadline %s\n", e.At)
	default:
		return fmt.Sprintf("  %s%+v\n", strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "shardcore.")), e)
	}
}
