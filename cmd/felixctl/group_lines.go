package main

import (
	"bytes"
	"io"
)

// lineMax is how much of a line is kept until its end comes; what is longer is passed on in pieces.
const lineMax = 64 << 10

// lines passes on what one command prints in whole lines, so that those of several commands do not mix. Each write of it is one of the
// writer below. It belongs to one goroutine.
type lines struct {
	to     io.Writer
	before string // written before each piece
	rest   []byte
	failed error // the first of a write, after which a command may end for want of a reader
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		part := p[:min(len(p), lineMax-len(l.rest))]
		p = p[len(part):]
		l.rest = append(l.rest, part...)
		whole := bytes.LastIndexByte(l.rest, '\n') + 1
		if whole == 0 && len(l.rest) == lineMax {
			whole = lineMax
		}
		if whole == 0 {
			continue
		}
		if err := l.pass(l.rest[:whole]); err != nil {
			return 0, err
		}
		l.rest = append(l.rest[:0], l.rest[whole:]...)
	}
	return n, nil
}

// flush ends a line that has no end.
func (l *lines) flush() error {
	if len(l.rest) == 0 {
		return nil
	}
	last := append(l.rest, '\n')
	l.rest = nil
	return l.pass(last)
}

func (l *lines) pass(text []byte) error {
	if l.before != "" {
		text = append([]byte(l.before), text...)
	}
	if _, err := l.to.Write(text); err != nil {
		l.failed = &printError{err}
	}
	return l.failed
}

// printError is that what commands print cannot be passed on.
type printError struct{ err error }

func (e *printError) Error() string { return e.err.Error() }

func (e *printError) Unwrap() error { return e.err }
