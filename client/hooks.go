package client

import "time"

// Hooks tell a program what the client does, for its logs and metrics; Client.Stats has the numbers. Each may be nil. They
// are called where it happens: they must be quick, must not call the client, except for Close, and may run at the same time.
type Hooks struct {
	// Connected and Disconnected: a connection to a broker began or ended. err says how it ended.
	Connected    func(c ConnectionInfo)
	Disconnected func(c ConnectionInfo, err error)
	// Retrying: a try failed and another follows after a pause.
	Retrying func(r Retry)
	// Dropped: the client-side queue of a subscription dropped a batch.
	Dropped func(d Drop)
}

// ConnectionInfo names a connection.
type ConnectionInfo struct {
	Addr  string    // of the broker, as it was dialed
	Kind  string    // what it carries: "shared", "publish", "event" or "cache"
	Since time.Time // when it was up
}

// Retry is a failed try that another one follows.
type Retry struct {
	Op    string // what is tried
	Try   int    // which try failed, from 1
	Pause time.Duration
	Err   error
}

// Drop is a batch of events that found no room.
type Drop struct {
	Op     string // of the subscription
	Shard  uint32
	Events int
}

func (h *Hooks) connected(c ConnectionInfo) {
	if h.Connected != nil {
		h.Connected(c)
	}
}

func (h *Hooks) disconnected(c ConnectionInfo, err error) {
	if h.Disconnected != nil {
		h.Disconnected(c, err)
	}
}

func (h *Hooks) retrying(r Retry) {
	if h.Retrying != nil {
		h.Retrying(r)
	}
}

func (h *Hooks) dropped(d Drop) {
	if h.Dropped != nil {
		h.Dropped(d)
	}
}
