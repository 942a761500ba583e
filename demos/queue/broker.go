package main

import (
	"time"

	"github.com/felixd/felixd/demos/local"
	"github.com/felixd/felixd/shardactor"
)

// streamName is the one stream.
const streamName = "jobs"

// durable is the broker, in the other process.
func durable() local.Durable {
	return local.Durable{
		Demo: "queue", Variable: "FELIX_DEMO_QUEUE", Stream: streamName,
		Adjust: func(o *shardactor.DiskOptions) {
			o.Groups.Options.BackOff = []time.Duration{0, 50 * time.Millisecond} // so that a demo is short
		},
	}
}
