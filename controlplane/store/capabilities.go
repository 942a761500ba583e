package store

import "github.com/felixd/felixd/controlplane/model"

// Capabilities says what the brokers of a deployment can do, so that the catalog never promises more than they keep.
type Capabilities struct {
	// Durable: streams may ask for durable storage.
	Durable bool
}

// Check returns an *UnsupportedError when the stream asks for something the deployment can't do.
func (c Capabilities) Check(s model.Stream) error {
	if s.Durable && !c.Durable {
		return &UnsupportedError{Field: "durable", Reason: "this broker has no storage directory, so a durable stream would lose its " +
			"records at a restart; leave durable out, or start the broker with a storage directory"}
	}
	return nil
}
