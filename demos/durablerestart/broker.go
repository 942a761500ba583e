package main

import "github.com/felixd/felixd/demos/local"

// streamName is the one stream.
const streamName = "ledger"

// durable is the broker, in the other process.
func durable() local.Durable {
	return local.Durable{Demo: "durablerestart", Variable: "FELIX_DEMO_DURABLERESTART", Stream: streamName}
}
