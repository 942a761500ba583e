package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/felixd/felixd/storage/segment"
)

func hex16(v uint64) string { return fmt.Sprintf("%016x", v) }

// WriteJSON writes the report as one JSON object, indented.
func (r *Report) WriteJSON(w io.Writer) error { return writeJSON(w, r) }

// WriteJSON writes the outcome as one JSON object, indented.
func (o *Outcome) WriteJSON(w io.Writer) error { return writeJSON(w, o) }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// WriteText writes the outcome for people: whether anything was done, then the steps.
func (o *Outcome) WriteText(w io.Writer) error {
	var b strings.Builder
	switch {
	case len(o.Steps) == 0:
		fmt.Fprintf(&b, "%s: a start opens this log, with the offsets from %d up to %d; nothing was changed\n", o.Dir, o.Base, o.End)
	case o.Done:
		fmt.Fprintf(&b, "%s: %s was done\n", o.Dir, o.Action)
	default:
		fmt.Fprintf(&b, "%s: %s would do this, and nothing was changed; say --yes to have it done\n", o.Dir, o.Action)
	}
	for _, s := range o.Steps {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	if o.Salvaged != "" {
		fmt.Fprintf(&b, "  what was taken away is kept in %s\n", o.Salvaged)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteText writes the report for people: one paragraph for each log, the verdict first.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for i := range r.Logs {
		r.Logs[i].text(&b)
	}
	for _, name := range r.Deleted {
		fmt.Fprintf(&b, "%s: deleted, and kept for a while\n", name)
	}
	for _, name := range r.Foreign {
		fmt.Fprintf(&b, "%s: not a file of this store\n", name)
	}
	fmt.Fprintf(&b, "%d logs, %d of them refuse to open\n", len(r.Logs), r.Refuses())
	_, err := io.WriteString(w, b.String())
	return err
}

func (l *Log) text(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %s", l.Dir, strings.ReplaceAll(string(l.Verdict), "_", " "))
	if l.Repaired != "" {
		fmt.Fprintf(b, " (%s: %d bytes)", l.Repaired, l.CutBytes)
	}
	b.WriteByte('\n')
	if l.Why != "" {
		fmt.Fprintf(b, "  why: %s\n", l.Why)
	}
	if l.Verdict == Empty {
		return
	}
	fmt.Fprintf(b, "  log %s, %s, incarnation %s, generation %d\n", l.LogID, l.Kind, l.Incarnation, l.Generation)
	fmt.Fprintf(b, "  offsets %d to %d, %d records, %d bytes in %d segments\n", l.Base, l.End, l.Records, l.Bytes, len(l.Segments))
	if m := l.Mark; m != nil {
		fmt.Fprintf(b, "  synced up to byte %d of segment %d, first segment %d\n", m.Synced, m.Segment, m.Oldest)
	} else {
		b.WriteString("  no durable mark that can be used\n")
	}
	for _, x := range l.Lost {
		if l.Kind == segment.Cache.String() && x.Cursors != nil {
			fmt.Fprintf(b, "  offsets from %d up to %d may have been told of without being here: they are not given again\n", x.End, *x.Cursors)
			continue
		}
		fmt.Fprintf(b, "  ended at offset %d once, and groups knew of more; what they had noted until then counts for nothing from there on\n", x.End)
	}
	for _, s := range l.Segments {
		state := "open"
		if s.Sealed {
			state = "sealed"
		}
		fmt.Fprintf(b, "  %s  offsets %d to %d, %d batches, %d bytes, %s, index %s\n", s.File, s.Base, s.End, s.Batches, s.Bytes, state, s.Index)
	}
	for _, s := range l.Snapshots {
		fmt.Fprintf(b, "  %s  %s, as of offset %d, %d bytes, %s", s.File, s.Form, s.AsOf, s.Bytes, s.State)
		if s.Why != "" {
			fmt.Fprintf(b, ": %s", s.Why)
		}
		b.WriteByte('\n')
	}
	for _, warning := range l.Warnings {
		fmt.Fprintf(b, "  note: %s\n", warning)
	}
}
