package rawquic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/felixd/felixd/internal/bench/machine"
)

const (
	// startTime is how long a child may take until it serves, and stopTime how long until it has ended after it was told to.
	startTime = time.Minute
	stopTime  = time.Minute
)

// Usage is what a server process has done and used since its start.
type Usage struct {
	Received uint64         `json:"received"`         // bytes, see Server.Received
	CPU      *time.Duration `json:"cpu_ns,omitempty"` // nil where the system does not tell
}

// Run is a server process: it listens, writes its Peer as one line of JSON, answers each further line of in with its Usage, and
// returns when in or ctx ends.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	s, err := Listen(o)
	if err != nil {
		return err
	}
	answers := json.NewEncoder(out)
	err = answers.Encode(s.Peer())
	asked := make(chan struct{})
	go func() { // it ends with in, which is the end of the process
		defer close(asked)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			select {
			case asked <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for err == nil {
		select {
		case _, more := <-asked:
			if !more {
				return s.Close()
			}
			err = s.report(answers)
		case <-ctx.Done():
			return s.Close()
		}
	}
	return errors.Join(err, s.Close())
}

func (s *Server) report(answers *json.Encoder) error {
	u := Usage{Received: s.Received()}
	if cpu, err := machine.CPUTime(); err == nil {
		u.CPU = &cpu
	}
	return answers.Encode(u)
}

// Process is a server in a process of its own.
type Process struct {
	Peer Peer

	cmd *exec.Cmd
	in  io.WriteCloser

	mu  sync.Mutex // one question at a time
	out *json.Decoder
}

// Start runs cmd, which has to call Run with its standard input and output, on one CPU or on machine.Any, and waits until it
// serves. Whoever starts it closes it.
func Start(cmd *exec.Cmd, cpu int) (*Process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start raw peer: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start raw peer: %w", err)
	}
	if err := machine.Start(cmd, cpu); err != nil {
		return nil, fmt.Errorf("start raw peer: %w", err)
	}
	p := &Process{cmd: cmd, in: in, out: json.NewDecoder(out)}
	late := time.AfterFunc(startTime, func() { _ = cmd.Process.Kill() }) // the read below then fails
	err = p.out.Decode(&p.Peer)
	late.Stop()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start raw peer: it did not say where it listens: %w", err), p.Close())
	}
	return p, nil
}

// Usage asks the process.
func (p *Process) Usage() (Usage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var u Usage
	if _, err := io.WriteString(p.in, "usage\n"); err != nil {
		return u, fmt.Errorf("ask raw peer: %w", err)
	}
	if err := p.out.Decode(&u); err != nil {
		return u, fmt.Errorf("ask raw peer: %w", err)
	}
	return u, nil
}

// Close tells the process to end and waits for it; one that does not is killed, which is an error.
func (p *Process) Close() error {
	_ = p.in.Close() // it has ended by itself when this fails, and Wait says how
	late := time.AfterFunc(stopTime, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("stop raw peer: %w", err)
	}
	return nil
}
