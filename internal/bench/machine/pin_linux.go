package machine

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CPUs lists the CPUs that this process may run on, in rising order.
func CPUs() ([]int, error) {
	set, err := allowed(0)
	if err != nil {
		return nil, err
	}
	var cpus []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
}

func allowed(thread int) (unix.CPUSet, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(thread, &set); err != nil {
		return set, fmt.Errorf("read the CPUs of thread %d: %w", thread, err)
	}
	return set, nil
}

func restrict(thread int, set *unix.CPUSet) error {
	if err := unix.SchedSetaffinity(thread, set); err != nil {
		return fmt.Errorf("set the CPUs of thread %d: %w", thread, err)
	}
	return nil
}

// pinThread keeps the calling thread on one CPU. The caller holds the thread.
func pinThread(cpu int) (undo func() error, err error) {
	before, err := allowed(0)
	if err != nil {
		return nil, err
	}
	var one unix.CPUSet
	one.Set(cpu)
	if err := restrict(0, &one); err != nil {
		return nil, fmt.Errorf("pin to CPU %d: %w", cpu, err)
	}
	return func() error { return restrict(0, &before) }, nil
}

// pinProcess keeps all threads on one CPU. A thread that is born meanwhile inherits the place of the one that made it, so the list
// is read again until it holds nobody new.
func pinProcess(cpu int) (undo func() error, err error) {
	before, err := allowed(0)
	if err != nil {
		return nil, err
	}
	var one unix.CPUSet
	one.Set(cpu)
	if err := restrictAll(&one); err != nil {
		return nil, errors.Join(fmt.Errorf("pin to CPU %d: %w", cpu, err), restrictAll(&before))
	}
	return func() error { return restrictAll(&before) }, nil
}

func restrictAll(set *unix.CPUSet) error {
	done := map[int]bool{}
	for {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		fresh := false
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[id] {
				continue
			}
			if err := restrict(id, set); err != nil && !errors.Is(err, unix.ESRCH) { // one that has just ended
				return err
			}
			done[id], fresh = true, true
		}
		if !fresh {
			return nil
		}
	}
}
