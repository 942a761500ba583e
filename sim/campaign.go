package main

import "sync"

// Campaign runs the seeds from..to, both included, on so many workers, and returns their results in the order of the seeds. Each world is
// alone in its goroutine; they share nothing.
func Campaign(from, to uint64, workers int) []Result {
	results := make([]Result, to-from+1)
	next := make(chan uint64)
	var done sync.WaitGroup
	for range workers {
		done.Go(func() {
			for seed := range next {
				results[seed-from] = Run(NewPlan(seed), nil)
			}
		})
	}
	for seed := from; ; seed++ {
		next <- seed
		if seed == to {
			break
		}
	}
	close(next)
	done.Wait()
	return results
}
