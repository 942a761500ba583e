package machine

import (
	"os"
	"os/exec"
	"runtime"
)

// Any is the place of a process that may run on every CPU.
const Any = -1

// Start starts cmd on one CPU with one P (GOMAXPROCS=1), or, with Any, wherever it may run. The child has its place from its first
// instruction on; an interrupt from the terminal does not reach it, since whoever started it ends it. A CPU needs a system that can
// pin; see Pin.
func Start(cmd *exec.Cmd, cpu int) error {
	apart(cmd)
	if cpu == Any {
		return cmd.Start()
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	runtime.LockOSThread() // a child inherits the CPUs of the thread that starts it
	defer runtime.UnlockOSThread()
	back, err := pinThread(cpu)
	if err != nil {
		return err
	}
	err = cmd.Start()
	if undo := back(); err == nil {
		err = undo
	}
	return err
}

// Pin keeps all of this process on one CPU with one P, and returns what undoes it. Only Linux can.
func Pin(cpu int) (undo func() error, err error) {
	back, err := pinProcess(cpu)
	if err != nil {
		return nil, err
	}
	procs := runtime.GOMAXPROCS(1)
	return func() error {
		runtime.GOMAXPROCS(procs)
		return back()
	}, nil
}
