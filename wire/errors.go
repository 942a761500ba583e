package wire

import (
	"fmt"
	"strconv"
)

// Code names why a request was refused. Its number travels in binary acks, its name in JSON. A number this version
// does not know is kept as it is.
type Code uint16

const (
	// CodeUnknown is the code of a refusal whose name this version does not know, or that came without a code.
	CodeUnknown Code = 0
	// CodeUnauthenticated: the stream has no valid token.
	CodeUnauthenticated Code = 1
	// CodeForbidden: the token does not allow this.
	CodeForbidden Code = 2
	// CodeNotFound: the tenant, namespace, stream or cache is not known here.
	CodeNotFound Code = 3
	// CodeInvalidRequest: the request itself is wrong.
	CodeInvalidRequest Code = 4
	// CodeShardUnavailable: nobody can serve the shard right now; Reason says why.
	CodeShardUnavailable Code = 5
	// CodeNotLeader: another broker owns the shard.
	CodeNotLeader Code = 6
	// CodeQuorumTimeout: written by the leader, not confirmed by a majority in time.
	CodeQuorumTimeout Code = 7
	// CodeLeadershipLost: leadership moved between the write and the majority.
	CodeLeadershipLost Code = 8
	// CodeUnacknowledged: the broker stopped waiting for the outcome.
	CodeUnacknowledged Code = 9
	// CodeOverloaded: load is being shed.
	CodeOverloaded Code = 10
	// CodeLimitExceeded: a configured limit is reached.
	CodeLimitExceeded Code = 11
	// CodeDraining: the broker is shutting down.
	CodeDraining Code = 12
	// CodeInternal: anything else.
	CodeInternal Code = 13
	// CodeStorage: storage failed.
	CodeStorage Code = 14
	// CodeStaleClaim: a settlement names a delivery that no longer stands.
	CodeStaleClaim Code = 15

	// CodeRevoked: the principal's tokens were revoked. The published protocol names it without a number, so it has a
	// local one that never travels; in a binary ack it is sent as CodeUnauthenticated.
	CodeRevoked Code = 0xFFFE
	// CodeStreamDeleted: the stream being read was deleted. Without a published number like CodeRevoked; in a binary ack
	// it is sent as CodeNotFound.
	CodeStreamDeleted Code = 0xFFFD
)

// Values of Refusal.Reason.
const (
	ReasonNotAssigned       = "not_assigned"        // shard_unavailable: no broker was given the shard
	ReasonOwnerUnavailable  = "owner_unavailable"   // shard_unavailable: its owner cannot be reached
	ReasonNotReady          = "not_ready"           // shard_unavailable: it is opening or settling
	ReasonStale             = "stale"               // shard_unavailable: this broker's view is behind
	ReasonFenced            = "fenced"              // shard_unavailable: the right to serve was lost, nothing was written
	ReasonMoving            = "moving"              // shard_unavailable: it is being handed over
	ReasonRegionNotRoutable = "region_not_routable" // shard_unavailable: its region cannot be reached from here
	ReasonPublishQueueFull  = "publish_queue_full"  // overloaded: no room for the publish
	ReasonTenantQuota       = "tenant_quota"        // overloaded: the tenant is over its quota
	ReasonRequestsWaiting   = "requests_waiting"    // overloaded: as many reads and subscribes wait as there is room for
	ReasonWatchSnapshots    = "watch_snapshots"     // overloaded: watches hold as many current values as there is room for
	ReasonDiskStalled       = "disk_stalled"        // storage: the disk does not answer a read
)

// codeRow is one line of the error table.
type codeRow struct {
	code     Code
	name     string
	class    Retry // sent when the refusal names no other
	binary   Code  // number in a binary ack
	sentence string
}

// codeTable is the whole table. A client in any language can be written from it.
var codeTable = [...]codeRow{
	{1, "unauthenticated", RetryFatal, 1, "The stream carries no token that verifies; send auth with a valid token first."},
	{2, "forbidden", RetryFatal, 2, "The token lacks the permission, or names another tenant."},
	{3, "not_found", RetryAfter, 3, "The tenant, namespace, stream or cache is not known here; it may not have arrived yet."},
	{4, "invalid_request", RetryFatal, 4, "The request is malformed or breaks a rule; correct it before sending it again."},
	{5, "shard_unavailable", RetryRetry, 5, "Nobody can serve the shard right now; the reason says why."},
	{6, "not_leader", RetryRedirect, 6, "Another broker owns the shard; ask that one."},
	{7, "quorum_timeout", RetryOutcomeUnknown, 7, "The leader wrote it, and no majority confirmed it in time."},
	{8, "leadership_lost", RetryOutcomeUnknown, 8, "Leadership moved between the write and its confirmation."},
	{9, "unacknowledged", RetryOutcomeUnknown, 9, "The broker stopped waiting for the outcome."},
	{10, "overloaded", RetryAfter, 10, "Load is being shed; pause, then repeat."},
	{11, "limit_exceeded", RetryFatal, 11, "A configured limit is reached; close something or raise it."},
	{12, "draining", RetryRetry, 12, "The broker is shutting down; use another one."},
	{13, "internal", RetryOutcomeUnknown, 13, "Something unexpected failed; whether the request had an effect is not known."},
	{14, "storage", RetryOutcomeUnknown, 14, "Storage failed during a write; whether it had an effect is not known."},
	{15, "stale_claim", RetryRetry, 15, "The settlement names a delivery that the group has no record of."},
	{CodeRevoked, "revoked", RetryFatal, 1, "The principal's tokens were revoked; sign in again."},
	{CodeStreamDeleted, "stream_deleted", RetryFatal, 3, "The stream was deleted while it was being read."},
}

// row returns the table line of c; false for a code that is not in the table.
func (c Code) row() (codeRow, bool) {
	for i := range codeTable {
		if codeTable[i].code == c {
			return codeTable[i], true
		}
	}
	return codeRow{}, false
}

// String returns the name on the wire, "unknown" for CodeUnknown and "code_<n>" for a number not in the table.
func (c Code) String() string {
	if row, ok := c.row(); ok {
		return row.name
	}
	if c == CodeUnknown {
		return "unknown"
	}
	return "code_" + strconv.Itoa(int(c))
}

// Sentence says in one sentence what the code means and what to do; empty for a code not in the table.
func (c Code) Sentence() string {
	if row, ok := c.row(); ok {
		return row.sentence
	}
	return ""
}

// DefaultRetry returns the class sent when a refusal names no other; fatal for a code not in the table.
func (c Code) DefaultRetry() Retry {
	if row, ok := c.row(); ok {
		return row.class
	}
	return RetryFatal
}

// binaryNumber is what stands for c in a binary ack.
func (c Code) binaryNumber() uint16 {
	if row, ok := c.row(); ok {
		return uint16(row.binary)
	}
	return uint16(c)
}

// codeOf reads the number of a binary ack. The local numbers of the codes without one mean nothing there.
func codeOf(n uint16) Code {
	if c := Code(n); c != CodeRevoked && c != CodeStreamDeleted {
		return c
	}
	return CodeUnknown
}

// ParseCode returns the code with this name; CodeUnknown and false for a name that is not in the table.
func ParseCode(name string) (Code, bool) {
	for i := range codeTable {
		if codeTable[i].name == name {
			return codeTable[i].code, true
		}
	}
	return CodeUnknown, false
}

// Retry says what the sender of a refused request may do. Its numbers travel in binary acks, its names in JSON.
type Retry uint8

const (
	// RetryRetry: no effect; repeat at once.
	RetryRetry Retry = 1
	// RetryAfter: no effect; pause, then repeat.
	RetryAfter Retry = 2
	// RetryRedirect: no effect; repeat at the owner of the shard.
	RetryRedirect Retry = 3
	// RetryOutcomeUnknown: it may have happened; repeat only what is idempotent.
	RetryOutcomeUnknown Retry = 4
	// RetryFatal: repeating is pointless.
	RetryFatal Retry = 5
)

var retryNames = [...]string{RetryRetry: "retry", RetryAfter: "retry_after", RetryRedirect: "redirect",
	RetryOutcomeUnknown: "outcome_unknown", RetryFatal: "fatal"}

// String returns the name on the wire; "fatal" for a value outside the table, which is how it is to be read.
func (r Retry) String() string { return retryNames[retryOf(uint8(r))] }

// ParseRetry returns the class with this name. An unknown name is RetryFatal, and ok is false.
func ParseRetry(name string) (r Retry, ok bool) {
	for i, n := range retryNames {
		if i > 0 && n == name {
			return Retry(i), true
		}
	}
	return RetryFatal, false
}

// retryOf reads the byte of a binary ack; unknown bytes are fatal.
func retryOf(b uint8) Retry {
	if b == 0 || b > uint8(RetryFatal) {
		return RetryFatal
	}
	return Retry(b)
}

// Refusal is why a request was not served, and what its sender may do. It is an error; errors.Is matches a Refusal
// that has only a Code against any refusal with that code.
type Refusal struct {
	Code         Code
	Retry        Retry
	Message      string // prose, sent to the client
	Reason       string // finer cause, one of the Reason constants; may be empty
	RetryAfterMS uint64 // pause before repeating, in milliseconds; 0 gives none
}

// Refuse returns a refusal of the code's default class.
func Refuse(code Code, message string) Refusal {
	return Refusal{Code: code, Retry: code.DefaultRetry(), Message: message}
}

// WithRetry returns r with another class than the code's default.
func (r Refusal) WithRetry(class Retry) Refusal {
	r.Retry = class
	return r
}

// WithReason returns r with a reason and a pause in milliseconds, 0 for none.
func (r Refusal) WithReason(reason string, retryAfterMS uint64) Refusal {
	r.Reason, r.RetryAfterMS = reason, retryAfterMS
	return r
}

func (r Refusal) Error() string {
	if r.Reason != "" {
		return fmt.Sprintf("%s (%s): %s", r.Code, r.Reason, r.Message)
	}
	return fmt.Sprintf("%s: %s", r.Code, r.Message)
}

// Is reports whether target is a Refusal of the same code without further fields.
func (r Refusal) Is(target error) bool {
	t, ok := target.(Refusal)
	return ok && t == Refusal{Code: r.Code}
}

// sent is the code that goes over the wire: 0 is no number, so a refusal of which only the class is known is sent as
// internal with that class. CodeUnknown: there is nothing to send.
func (r *Refusal) sent() Code {
	if r.Code == CodeUnknown && r.Retry != 0 {
		return CodeInternal
	}
	return r.Code
}

// class is the class that goes over the wire: the code's own when the refusal was built without one.
func (r *Refusal) class() Retry {
	if r.Retry == 0 {
		return r.Code.DefaultRetry()
	}
	return retryOf(uint8(r.Retry))
}
