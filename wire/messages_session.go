package wire

import "slices"

// Session messages: authentication, negotiation and the generic answers.

// Auth is the first frame of every client stream.
type Auth struct {
	TenantID         string        // tenant this stream acts for
	Token            string        // opaque here; at most MaxTokenBytes
	ClientFlags      Opt[Flags]    // frame layouts the client reads; unset: a client without negotiation
	ClientFeatures   Opt[Features] // see Offer
	ClientFeaturesHi Opt[uint32]   // counts only with FeatureExtended
}

// AuthOK accepts an Auth that carried client_flags.
type AuthOK struct {
	ServerFlags      Flags
	ServerFeatures   Opt[Features]
	ServerFeaturesHi Opt[uint32]
	ListenerPorts    []uint16    // all client ports, only when there is more than one
	PublishWindow    Opt[uint32] // unanswered publishes allowed; only with FeaturePublishPipeline
}

// OK is success without anything to say: an Auth without client_flags, or a request without an id.
type OK struct{}

// Unsupported answers a request of a type that is not served; only for clients with FeatureUnsupported.
type Unsupported struct {
	RequestType string      // the type as received
	Extension   Opt[string] // name, when the type was extension
	RequestID   Opt[uint64] // copied from the request
}

// Extension is a request outside the protocol. Body is its JSON text, nil when there is none.
type Extension struct {
	Name      string
	RequestID Opt[uint64]
	Body      []byte // one valid JSON value; encoding panics on anything else
}

// Answer returns the unsupported message that answers an extension nobody implements.
func (m *Extension) Answer() *Unsupported {
	return &Unsupported{RequestType: m.MessageType(), Extension: Some(cutText(m.Name)), RequestID: m.RequestID}
}

// MessageType returns "auth".
func (*Auth) MessageType() string { return "auth" }

func (m *Auth) fields(f *fields) {
	f.str("tenant_id", MaxNameBytes, &m.TenantID)
	f.str("token", MaxTokenBytes, &m.Token)
	optUint(f, "client_flags", &m.ClientFlags)
	optUint(f, "client_features", &m.ClientFeatures)
	optUint(f, "client_features_hi", &m.ClientFeaturesHi)
}

// MessageType returns "auth_ok".
func (*AuthOK) MessageType() string { return "auth_ok" }

func (m *AuthOK) fields(f *fields) {
	uintField(f, "server_flags", &m.ServerFlags)
	optUint(f, "server_features", &m.ServerFeatures)
	optUint(f, "server_features_hi", &m.ServerFeaturesHi)
	f.ports("listener_ports", &m.ListenerPorts)
	optUint(f, "publish_window", &m.PublishWindow)
}

// ports is an optional array of u16; an empty one is left out.
func (f *fields) ports(name string, v *[]uint16) {
	if !f.at(name, may) {
		return
	}
	if f.pass == writing {
		f.putPorts(name, *v)
		return
	}
	*v = nil
	if f.null() {
		return
	}
	ports := make([]uint16, 0, f.room(leastNumber, unlimited))
	for f.nextElement(len(ports) == 0) {
		ports = append(ports, uint16(f.scanner.uint(1<<16-1)))
	}
	if len(ports) > 0 {
		*v = ports
	}
}

func (f *fields) putPorts(name string, ports []uint16) {
	for i, p := range ports {
		if i == 0 {
			f.put(name)
			f.out = append(f.out, '[')
		} else {
			f.out = append(f.out, ',')
		}
		f.out = appendUint(f.out, uint64(p))
	}
	if len(ports) > 0 {
		f.out = append(f.out, ']')
	}
}

// MessageType returns "ok".
func (*OK) MessageType() string { return "ok" }

func (*OK) fields(*fields) {}

// MessageType returns "unsupported".
func (*Unsupported) MessageType() string { return "unsupported" }

func (m *Unsupported) fields(f *fields) {
	f.str("request_type", unlimited, &m.RequestType)
	f.optStr("extension", unlimited, &m.Extension)
	optUint(f, "request_id", &m.RequestID)
}

// MessageType returns "extension".
func (*Extension) MessageType() string { return "extension" }

func (m *Extension) fields(f *fields) {
	f.str("name", unlimited, &m.Name)
	optUint(f, "request_id", &m.RequestID)
	f.value("body", &m.Body)
}

// value is any JSON value, kept as text; null and nil are both absence.
func (f *fields) value(name string, v *[]byte) {
	if !f.at(name, may) {
		return
	}
	if f.pass == writing {
		f.putValue(name, *v)
		return
	}
	f.peek()
	start := f.pos
	f.scanner.skip()
	*v = nil
	if f.err == nil && string(f.in[start:f.pos]) != "null" {
		*v = slices.Clone(f.in[start:f.pos])
	}
}

func (f *fields) putValue(name string, v []byte) {
	if v == nil {
		return
	}
	s := scanner{in: v}
	if s.skip(); s.err != nil || s.peek() != 0 {
		panic("wire: encode extension: its body is not one JSON value")
	}
	f.put(name)
	f.out = append(f.out, v...)
}
