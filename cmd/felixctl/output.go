package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// asJSON reports whether results are JSON: when asked for, and wherever nobody reads along.
func (a *app) asJSON() bool { return a.flags.json || !a.sys.stdoutTerminal }

// writeJSON writes one object on one line, in one piece.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("felixctl: a result does not encode: %v", err)) // all results are plain structs of this package
	}
	_, err := w.Write(b.Bytes())
	return err
}

// result prints text for people or an object for programs.
func (a *app) result(object any, format string, args ...any) error {
	if a.asJSON() {
		return writeJSON(a.sys.stdout, object)
	}
	_, err := fmt.Fprintf(a.sys.stdout, format+"\n", args...)
	return err
}

// table prints rows under a head, in columns.
func (a *app) table(head []string, rows [][]string) error {
	w := tabwriter.NewWriter(a.sys.stdout, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// note tells people something on the side.
func (a *app) note(format string, args ...any) {
	if !a.flags.quiet && !a.flags.json {
		fmt.Fprintf(a.sys.stderr, format+"\n", args...)
	}
}

// blob is bytes in JSON: text where they are UTF-8, base64 otherwise.
type blob []byte

// members returns the one of the two members that fits; the other is nil.
func (b blob) members() (text, encoded *string) {
	if utf8.Valid(b) {
		s := string(b)
		return &s, nil
	}
	s := base64.StdEncoding.EncodeToString(b)
	return nil, &s
}

// escape makes bytes safe for a terminal: what cannot be printed is written as Go writes it in a string.
func escape(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, b[0])
		case unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
		b = b[n:]
	}
	return out.String()
}

// plural is "1 record", "2 records".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
