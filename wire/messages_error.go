package wire

// Error answers. Codes and classes are kept as the text that came, so that names of a later version survive.

// Failure is what error and publish_error have in common.
type Failure struct {
	Message string      // prose
	Code    Opt[string] // a name of the error table; only to clients with FeatureErrorCodes
	Retry   Opt[string] // a retry class; absent with a code: the code's default
	Detail  Opt[Detail]
}

// Detail refines a code.
type Detail struct {
	Reason       Opt[string] // one of the Reason constants
	RetryAfterMS Opt[uint64] // pause before repeating, in milliseconds
}

// ErrorAnswer answers the request in progress on its stream; it names no request id.
type ErrorAnswer struct{ Failure }

// PublishError answers one acked publish.
type PublishError struct {
	RequestID uint64
	Failure
}

// FailureOf turns a refusal into what the client may read of it: code, class and detail only when it offered
// FeatureErrorCodes. The message is cut to MaxErrorTextBytes.
func FailureOf(r Refusal, grant Grant) Failure {
	f := Failure{Message: cutText(r.Message)}
	if !grant.Features.Has(FeatureErrorCodes) || r.sent() == CodeUnknown {
		return f
	}
	f.Code, f.Retry = Some(r.sent().String()), Some(r.class().String())
	if r.Reason != "" {
		f.Detail.V.Reason, f.Detail.Set = Some(cutText(r.Reason)), true
	}
	if r.RetryAfterMS != 0 {
		f.Detail.V.RetryAfterMS, f.Detail.Set = Some(r.RetryAfterMS), true
	}
	return f
}

// ErrorOf returns the error message for a refusal, see FailureOf.
func ErrorOf(r Refusal, grant Grant) *ErrorAnswer { return &ErrorAnswer{FailureOf(r, grant)} }

// Refusal turns what came over the wire into a refusal. A code with an unknown name becomes CodeUnknown and keeps its
// class; an unknown class is fatal; without any code there is no class either, Retry is 0.
func (f Failure) Refusal() Refusal {
	r := Refusal{Message: f.Message, Reason: f.Detail.V.Reason.V, RetryAfterMS: f.Detail.V.RetryAfterMS.V}
	if f.Code.Set {
		r.Code, _ = ParseCode(f.Code.V)
		r.Retry = r.Code.DefaultRetry()
	}
	if f.Retry.Set {
		r.Retry, _ = ParseRetry(f.Retry.V)
	}
	return r
}

// MessageType returns "error".
func (*ErrorAnswer) MessageType() string { return "error" }

// MessageType returns "publish_error".
func (*PublishError) MessageType() string { return "publish_error" }

func (m *PublishError) fields(f *fields) {
	uintField(f, "request_id", &m.RequestID)
	m.Failure.fields(f)
}

func (m *Failure) fields(f *fields) {
	f.str("message", unlimited, &m.Message)
	f.optStr("code", unlimited, &m.Code)
	f.optStr("retry", unlimited, &m.Retry)
	f.detail("detail", &m.Detail)
}

func (d *Detail) fields(f *fields) {
	f.optStr("reason", unlimited, &d.Reason)
	optUint(f, "retry_after_ms", &d.RetryAfterMS)
}

// detail is an optional object.
func (f *fields) detail(name string, v *Opt[Detail]) {
	if f.pass == writing && !v.Set || !f.at(name, may) {
		return
	}
	if f.pass == writing {
		f.put(name)
	} else if *v = (Opt[Detail]{}); f.null() {
		return
	}
	v.Set = true
	for o := f.object("detail."); f.more(&o); {
		v.V.fields(f)
	}
}
