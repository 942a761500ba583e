package wire

// Role is what a client-opened stream may be used for, by its direction.
type Role uint8

const (
	// RoleControl is a bidirectional stream: any request, each answered.
	RoleControl Role = iota + 1
	// RolePublishOnly is a unidirectional stream: auth, then publishes without answers. The broker cannot answer on it.
	RolePublishOnly
)

// Phase is how far a stream has come.
type Phase uint8

const (
	// PhaseNew: no auth has succeeded on this stream yet.
	PhaseNew Phase = iota + 1
	// PhaseOpen: the stream is authenticated.
	PhaseOpen
)

// Action is what to do with a request.
type Action uint8

const (
	// Accept: serve it.
	Accept Action = iota + 1
	// AnswerRefusal: send the refusal; the stream goes on at the next frame.
	AnswerRefusal
	// AnswerRefusalAndEnd: send the refusal, then finish the stream.
	AnswerRefusalAndEnd
	// AnswerUnsupported: send unsupported with the type and request id; the stream goes on.
	AnswerUnsupported
	// EndSilently: send nothing and finish the stream.
	EndSilently
	// Drop: send nothing, count it, and go on at the next frame.
	Drop
)

// String returns the action in words, for logs and counters.
func (a Action) String() string {
	names := [...]string{"none", "accept", "answer_refusal", "answer_refusal_and_end", "answer_unsupported", "end_silently", "drop"}
	if int(a) < len(names) {
		return names[a]
	}
	return "none"
}

// Verdict is the action and, for the two that answer with one, the refusal. How the refusal travels (error,
// publish_error, binary ack; with or without a code) is the answerer's business.
type Verdict struct {
	Action  Action
	Refusal Refusal
}

// Judge decides what happens to a request before anything looks into it. answersOwed is false exactly for a publish
// that asked for no answer, well formed or not; an answer to such a one would be taken for somebody else's and fail
// everything pending on the stream, so not even its mistakes are answered. offer is what the client said in auth; the
// zero Offer before that.
func Judge(role Role, phase Phase, kind RequestKind, answersOwed bool, offer Offer) Verdict {
	if role == RolePublishOnly {
		return judgePublishOnly(phase, kind, answersOwed)
	}
	if phase == PhaseNew {
		return judgeNew(kind, answersOwed)
	}
	switch {
	case kind == KindUnknownFlags: // with unknown bits it is no known publish, so the rule of silence does not apply
		return refuse(AnswerRefusal, CodeInvalidRequest, "the frame's flags are not known or do not go together; use only flags the broker offered in auth_ok")
	case kind == KindMalformed && answersOwed:
		return refuse(AnswerRefusal, CodeInvalidRequest, "the request does not follow its layout")
	case kind == KindMalformed:
		return Verdict{Action: Drop}
	case kind == KindAuth:
		return refuse(AnswerRefusal, CodeInvalidRequest, "the stream is already authenticated; open another stream to use another token")
	case kind.Served():
		return Verdict{Action: Accept}
	}
	return NotServed(kind, offer)
}

// NotServed decides what happens to a well-formed request, of a client that is signed in, which this broker does not take.
func NotServed(kind RequestKind, offer Offer) Verdict {
	switch {
	case kind == KindPublishIdempotent: // a publish is answered under its request id, or its whole stream fails
		return refuse(AnswerRefusal, CodeInvalidRequest, "idempotent publishes are not served here; the broker did not offer them in auth_ok")
	case offer.Features.Has(FeatureUnsupported):
		return Verdict{Action: AnswerUnsupported}
	}
	return Verdict{Action: EndSilently}
}

// judgeNew lets auth through and ends the stream after anything else.
func judgeNew(kind RequestKind, answersOwed bool) Verdict {
	switch {
	case kind == KindAuth:
		return Verdict{Action: Accept}
	case !answersOwed:
		return Verdict{Action: EndSilently}
	case kind == KindMalformed, kind == KindUnknownFlags:
		return refuse(AnswerRefusalAndEnd, CodeInvalidRequest, "the first frame of a stream must be auth, and this one does not decode")
	}
	return refuse(AnswerRefusalAndEnd, CodeUnauthenticated, "unauthorized: the stream has sent no token yet; send auth first")
}

// judgePublishOnly takes auth, then publishes that want no answer. Nothing else can be served without answering.
func judgePublishOnly(phase Phase, kind RequestKind, answersOwed bool) Verdict {
	if phase == PhaseNew && kind == KindAuth {
		return Verdict{Action: Accept}
	}
	if phase == PhaseOpen && kind == KindPublish && !answersOwed {
		return Verdict{Action: Accept}
	}
	return Verdict{Action: EndSilently}
}

func refuse(action Action, code Code, message string) Verdict {
	return Verdict{Action: action, Refusal: Refuse(code, message)}
}
