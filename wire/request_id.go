package wire

// RequestIDOf returns the request id of a message, as it came or as it will be written; unset for a message without
// one. It is what an answer has to echo when nobody serves the request.
func RequestIDOf(m Message) Opt[uint64] {
	f := fields{pass: asking}
	m.fields(&f)
	return f.requestID
}
