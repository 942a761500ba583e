package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"github.com/felixd/felixd/client"
)

const (
	envFaultSocket = "FELIX_FAULT_SOCKET"
	// faultSocket is the fault door's name beside dev.json.
	faultSocket = "fault.sock"
	// faultPatience is how long the door may take for an answer; it does nothing that waits.
	faultPatience = 10 * time.Second
	// faultAnswerMax bounds an answer in bytes: a full page of the longest paths, every byte of them escaped, stays under it.
	faultAnswerMax = 4 << 20
)

// faultDoor is a connection to the fault door of a felixd.
type faultDoor struct {
	path    string
	conn    net.Conn
	answers *bufio.Scanner
}

// faultRequest is one line to the door; docs/operations.md tells what it may ask.
type faultRequest struct {
	Do    string `json:"do"`
	Actor string `json:"actor,omitempty"`
	MS    int64  `json:"ms,omitempty"`
	ForMS int64  `json:"for_ms,omitempty"`
	After string `json:"after,omitempty"`
}

// faultRefusal is an answer of the door that says no.
type faultRefusal struct {
	Code    string `json:"error"`
	Message string `json:"message"`
}

func (e *faultRefusal) Error() string { return e.Code + ": " + e.Message }

// exit is the exit code: a path without an actor is like any other name that does not exist.
func (e *faultRefusal) exit() int {
	if e.Code == "unknown_actor" {
		return exitNotFound
	}
	return exitRefused
}

// faultSocketPath is where the door is: as told, or beside the context file.
func (a *app) faultSocketPath(flag string) string {
	for _, path := range [...]string{flag, a.sys.getenv(envFaultSocket)} {
		if path != "" {
			return path
		}
	}
	for _, file := range [...]string{a.flags.contextFile, a.sys.getenv(envContextFile)} {
		if file != "" {
			return filepath.Join(filepath.Dir(file), faultSocket)
		}
	}
	return filepath.Join(a.sys.workDir, filepath.Dir(filepath.FromSlash(devFile)), faultSocket)
}

// withFaultDoor connects, runs work and closes. A canceled ctx ends the work.
func (a *app) withFaultDoor(ctx context.Context, flag string, work func(d *faultDoor) error) error {
	d := &faultDoor{path: a.faultSocketPath(flag)}
	var err error
	if d.conn, err = (&net.Dialer{Timeout: faultPatience}).DialContext(ctx, "unix", d.path); err != nil {
		return noFaultDoor(d.path, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = d.conn.Close() })
	defer stop()
	defer func() { _ = d.conn.Close() }() // nothing is buffered: every request had its answer
	d.answers = bufio.NewScanner(d.conn)
	d.answers.Buffer(nil, faultAnswerMax)
	err = work(d)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// noFaultDoor says what to do about a socket that cannot be connected to.
func noFaultDoor(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no fault door at %s: start felixd with --fault-door, or name the socket with --fault-socket: %w", path, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nobody is behind the fault door at %s any more: start felixd with --fault-door: %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the fault door at %s is not yours: only the user who runs felixd may use it: %w", path, err)
	}
	return fmt.Errorf("reach the fault door at %s: %w", path, err)
}

// ask sends a request and decodes its answer into answer. A refusal is a *faultRefusal.
func (d *faultDoor) ask(r faultRequest, answer any) error {
	line, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("felixctl: a request to the fault door does not encode: %v", err)) // it is a plain struct
	}
	op := "fault " + r.Do
	if err := d.conn.SetDeadline(time.Now().Add(faultPatience)); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	_, wrote := d.conn.Write(append(line, '\n'))
	if !d.answers.Scan() { // the door may have said why before it closed, so the answer counts first
		if errors.Is(d.answers.Err(), bufio.ErrTooLong) {
			return fmt.Errorf("%s: the fault door at %s sent a line of more than %d bytes", op, d.path, faultAnswerMax)
		}
		return fmt.Errorf("%s: the fault door at %s: %w", op, d.path, errors.Join(client.ErrConnectionLost, wrote, d.answers.Err()))
	}
	var refusal faultRefusal
	if err := json.Unmarshal(d.answers.Bytes(), &refusal); err != nil {
		return fmt.Errorf("%s: the fault door at %s sent no JSON: %w", op, d.path, err)
	}
	if refusal.Code != "" {
		return fmt.Errorf("%s: %w", op, &refusal)
	}
	if err := json.Unmarshal(d.answers.Bytes(), answer); err != nil {
		return fmt.Errorf("%s: the fault door at %s sent another answer than expected: %w", op, d.path, err)
	}
	return nil
}
