//go:build !linux

package machine

import "errors"

var errNoPinning = errors.New("this system does not pin processes to CPUs: measure on Linux, or without pinning")

// CPUs lists the CPUs that this process may run on; only Linux tells.
func CPUs() ([]int, error) { return nil, errNoPinning }

func pinThread(int) (func() error, error) { return nil, errNoPinning }

func pinProcess(int) (func() error, error) { return nil, errNoPinning }
