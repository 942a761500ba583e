package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/felixd/felixd/wire"
)

// inputFlags say where messages come from besides the command line.
type inputFlags struct {
	file  string
	lines bool
	whole bool
}

func (f *inputFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.file, "file", "", "publish the content of this file, as one record")
	set.BoolVar(&f.lines, "lines", false, "with --file: one record per line")
	set.BoolVar(&f.whole, "whole", false, "all of standard input is one record")
}

// input yields messages. They come from a goroutine, because reading standard input cannot be given up; it ends with the
// input or, at the latest, with the process.
type input struct {
	items chan inputItem
	quit  <-chan struct{}
}

type inputItem struct {
	message []byte
	err     error
}

// next returns the next message; ok is false at the end.
func (in *input) next(ctx context.Context) (message []byte, ok bool, err error) {
	select {
	case item, open := <-in.items:
		return item.message, open && item.err == nil, item.err
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

// messages decides where messages come from. args is what follows the stream's name.
func (a *app) messages(ctx context.Context, f inputFlags, args []string) (*input, error) {
	literal := len(args) == 1 && args[0] != "-"
	switch {
	case f.file != "" && len(args) > 0:
		return nil, usagef("a message and --file are given; use one of them")
	case f.lines && f.file == "":
		return nil, usagef("--lines belongs to --file; standard input is read by lines anyway")
	case f.whole && (f.file != "" || literal):
		return nil, usagef("--whole is for standard input")
	case literal:
		return produce(ctx, func(yield func([]byte) bool) error {
			yield([]byte(args[0]))
			return nil
		}), nil
	case f.file != "":
		return fromFile(ctx, f)
	case len(args) == 0 && a.sys.stdinTerminal:
		return nil, usagef("nothing to publish: give a message, - to type lines, or --file")
	}
	return produce(ctx, func(yield func([]byte) bool) error {
		return read(a.sys.stdin, "standard input", !f.whole, yield)
	}), nil
}

func fromFile(ctx context.Context, f inputFlags) (*input, error) {
	file, err := os.Open(f.file)
	if err != nil {
		return nil, usagef("publish file: %v", err)
	}
	return produce(ctx, func(yield func([]byte) bool) error {
		return errors.Join(read(file, f.file, f.lines, yield), file.Close())
	}), nil
}

// produce runs a source in a goroutine.
func produce(ctx context.Context, source func(yield func([]byte) bool) error) *input {
	in := &input{items: make(chan inputItem), quit: ctx.Done()}
	give := func(item inputItem) bool {
		select {
		case in.items <- item:
			return true
		case <-in.quit:
			return false
		}
	}
	go func() {
		defer close(in.items)
		if err := source(func(m []byte) bool { return give(inputItem{message: m}) }); err != nil {
			give(inputItem{err: err})
		}
	}()
	return in
}

// read yields the lines of r without their line feed, or all of it. A message larger than a frame is an error here, before
// it takes more memory.
func read(r io.Reader, name string, lines bool, yield func([]byte) bool) error {
	if !lines {
		all, err := io.ReadAll(io.LimitReader(r, wire.MaxPayload+1))
		switch {
		case err != nil:
			return fmt.Errorf("read %s: %w", name, err)
		case len(all) > wire.MaxPayload:
			return usagef("%s is larger than a record may be (%d bytes)", name, wire.MaxPayload)
		}
		yield(all)
		return nil
	}
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, wire.MaxPayload)
	scanner.Split(splitLines)
	for scanner.Scan() {
		if !yield(bytes.Clone(scanner.Bytes())) {
			return nil
		}
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return usagef("a line of %s is larger than a record may be (%d bytes)", name, wire.MaxPayload)
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// splitLines cuts at line feeds and leaves every other byte alone, carriage returns included.
func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
