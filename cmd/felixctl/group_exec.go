package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/felixd/felixd/client"
)

// outcome is what came of a command.
type outcome string

const (
	succeeded   outcome = "acked"
	postponed   outcome = "put_off"
	failed      outcome = "failed"
	hopeless    outcome = "dead_letter"
	interrupted outcome = "interrupted" // it was ended, since the record is not ours any more or the work ends
	unrunnable  outcome = "not_run"
)

// What commands end with. The two of group work are those of the BSD header sysexits.h; the shell's are those of POSIX, Shell Command
// Language, 2.8.2.
const (
	exitDataErr       = 65
	exitTempFail      = 75
	exitNotExecutable = 126
	exitNoCommand     = 127
)

const (
	// endPatience is how long a command has to end by itself when it is told to. It is less than what a consumer that stops leaves to its
	// handlers, an eighth of its time and at most 2 s.
	endPatience  = time.Second
	endShare     = 16
	pipePatience = 2 * time.Second // for output that something in the background keeps open
)

var (
	errTimeout = errors.New("the command was ended: its time was up")
	errEnded   = errors.New("the command was ended: the work was interrupted")
)

// execution is a command that ran for a record. It is an error unless the record is finished.
type execution struct {
	message client.Message
	outcome outcome
	code    int // -1: it did not exit by itself
	took    time.Duration
	err     error
}

// Error says what happened to which record.
func (e *execution) Error() string {
	at := place{Shard: e.message.Shard, Offset: e.message.Offset}.text()
	return fmt.Sprintf("record %s, delivery %d: %v", at, e.message.Attempts, e.err)
}

// Unwrap gives how the command ended.
func (e *execution) Unwrap() error { return e.err }

// execute runs the command for a record to its end, whatever that is.
func (w *worker) execute(ctx context.Context, m client.Message) *execution {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(w.killing, func() { end(errEnded) })()
	if w.flags.timeout > 0 {
		defer time.AfterFunc(w.flags.timeout, func() { end(errTimeout) }).Stop()
	}
	began := time.Now()
	err := w.runCommand(ctx, m)
	e := &execution{message: m, took: time.Since(began), code: -1, err: err}
	var exited *exec.ExitError
	switch {
	case err == nil:
		e.outcome, e.code = succeeded, 0
	case ctx.Err() != nil:
		e.err = context.Cause(ctx)
		if e.outcome = interrupted; errors.Is(e.err, errTimeout) {
			e.outcome = failed
		}
	case !errors.As(err, &exited):
		e.outcome = unrunnable
	default:
		e.code = exited.ExitCode()
		e.outcome = outcomeOf(e.code)
	}
	return e
}

func outcomeOf(code int) outcome {
	switch code {
	case exitDataErr:
		return hopeless
	case exitTempFail:
		return postponed
	case exitNotExecutable, exitNoCommand:
		return unrunnable
	}
	return failed
}

// runCommand runs the command in a process group of its own, so that an interrupt from the terminal does not reach it, and ends all
// of the group when ctx ends.
func (w *worker) runCommand(ctx context.Context, m client.Message) error {
	out := &lines{to: w.app.sys.stdout, before: w.app.clearLine()}
	if w.app.flags.json {
		out.to = w.app.sys.stderr
	}
	errs := &lines{to: w.app.sys.stderr, before: out.before}
	cmd := shell(ctx, w.flags.command)
	cmd.Env = append(cmd.Environ(), w.facts(m)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(m.Payload), out, errs
	cmd.WaitDelay = pipePatience
	patience := min(endPatience, w.flags.stopTimeout/endShare)
	var late *time.Timer
	cmd.Cancel = func() error {
		late = time.AfterFunc(patience, func() { killGroup(cmd) })
		return endGroup(cmd)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	if late != nil { // Wait has waited for Cancel
		late.Stop()
		killGroup(cmd) // what did not heed, and does not keep the output open
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has exited with 0 by itself, whatever befell ctx since
	}
	_, _ = out.flush(), errs.flush() // they note what fails
	// A command whose output is not taken may have ended for that, whatever it ended with.
	return cmp.Or(out.failed, errs.failed, err)
}

// facts is what a command finds in its environment.
func (w *worker) facts(m client.Message) []string {
	return []string{
		"FELIX_NAMESPACE=" + w.group.Namespace, "FELIX_STREAM=" + w.group.Stream, "FELIX_GROUP=" + w.group.Group,
		"FELIX_SHARD=" + strconv.FormatUint(uint64(m.Shard), 10), "FELIX_OFFSET=" + strconv.FormatUint(uint64(m.Offset), 10),
		"FELIX_ATTEMPTS=" + strconv.FormatUint(uint64(m.Attempts), 10), "FELIX_SKIPPED_BEFORE=" + strconv.FormatUint(m.SkippedBefore, 10),
		"FELIX_TIMESTAMP=" + timeText(m.Timestamp), "FELIX_PUBLISHER=" + m.Publisher,
	}
}
