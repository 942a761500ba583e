package vfs

import "math/rand/v2"

// newRandom is a choice for Crash that depends on its seed only.
func newRandom(seed uint64) func(int) int { return rand.New(rand.NewPCG(seed, 7)).IntN }
