package actors

import (
	"fmt"
	"runtime"
)

// Reason tells why an incarnation ended.
type Reason uint8

const (
	// Orderly: somebody decided so, and no turn or callback of the actor panicked. (Stopped is the name of a lifecycle turn.)
	Orderly Reason = iota
	// Panicked: a turn, a lifecycle turn or a callback panicked; the actor was stopped for it, or it happened while stopping.
	Panicked
)

// String is the metric label: stopped or panicked.
func (r Reason) String() string {
	if r == Panicked {
		return "panicked"
	}
	return "stopped"
}

// PanicInfo describes the first panic of an incarnation. It implements error.
type PanicInfo struct {
	During string // new, started, turn, stopping, stopped, unstepped, unanswered, undelivered
	Value  any    // what was passed to panic
	Text   string // Value as text, at most 1 KiB
	Stack  []byte // the stack at the panic, at most 16 KiB
}

// Error says during what the panic happened, and its text.
func (p *PanicInfo) Error() string { return "panic during " + p.During + ": " + p.Text }

// panicTextMax bounds the text of a panic value: it goes into a log line.
const panicTextMax = 1 << 10

// newPanicInfo must be called from the deferred function that recovered value, while the stack is still there.
func newPanicInfo(during string, value any) *PanicInfo {
	buf := make([]byte, stackBytesMax)
	buf = buf[:runtime.Stack(buf, false)]
	return &PanicInfo{During: during, Value: value, Text: panicText(value), Stack: append([]byte(nil), buf...)}
}

// panicText renders value; a String or Error method that panics itself must not escape.
func panicText(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T that can't be printed", value)
		}
	}()
	text = fmt.Sprint(value)
	if len(text) > panicTextMax {
		text = text[:panicTextMax]
	}
	return text
}

// Terminated tells that an incarnation is gone: its mailbox refuses for ever and its last callbacks have run. For its parent, and for a
// top-level actor, the name is free.
type Terminated struct {
	Path   string
	Name   string // the name under its parent
	ID     uint64 // the incarnation, equal to Ref.ID of every ref to it
	Reason Reason
	Panic  *PanicInfo // the first panic; nil if Reason is Orderly
}
