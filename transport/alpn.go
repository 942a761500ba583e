package transport

// Application protocol names of TLS (RFC 7301). A listener speaks exactly one of them, so that a client that reaches the
// internal port fails inside the handshake, before it can send a frame.
const (
	// ALPNClient is the protocol between a client and a broker.
	ALPNClient = "felix/1"
	// ALPNInternal is the protocol between brokers. The client listener never selects it.
	ALPNInternal = "felix-internal/1"
)
