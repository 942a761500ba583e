package shardactor

import "runtime"

// yield lets other goroutines run while a test waits for a condition that has no event.
func yield() { runtime.Gosched() }
