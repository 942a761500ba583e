package main

import "sync"

// DurableCampaign is Campaign for durable worlds.
func DurableCampaign(from, to uint64, workers int, change func(*DurablePlan)) []DurableResult {
	results := make([]DurableResult, to-from+1)
	next := make(chan uint64)
	var done sync.WaitGroup
	for range workers {
		done.Go(func() {
			for seed := range next {
				plan := NewDurablePlan(seed)
				if change != nil {
					change(&plan)
				}
				results[seed-from] = RunDurable(plan, nil)
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
