package storage

import (
	"fmt"
	"strings"
)

// Policy says what becomes of a batch that arrives when the window of some reader is full. It belongs to the broker, never
// to a reader: one that could ask for Block would hold up a shard's publishers at will.
type Policy uint8

const (
	// DropNew: the arriving batch is lost to that reader alone. Publishers and other readers do not notice.
	DropNew Policy = iota
	// Block: nothing is lost; the publisher of the batch waits for its acknowledgement until the reader has room.
	Block
	// DropOld is accepted for compatibility and does what DropNew does.
	DropOld
	// CatchUp: nothing is lost and nobody waits; the reader reads on from disk. Durable logs only.
	CatchUp
)

var policyNames = [...]string{DropNew: "drop_new", Block: "block", DropOld: "drop_old", CatchUp: "catch_up"}

// String is the name in settings and answers.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("policy_%d", uint8(p))
}

// ParsePolicy reads the name of a policy, in either case. The error is a *PolicyError.
func ParsePolicy(name string) (Policy, error) {
	for p, n := range policyNames {
		if strings.EqualFold(n, name) {
			return Policy(p), nil
		}
	}
	return DropNew, &PolicyError{Name: name, Why: "there is none of that name; use " + strings.Join(policyNames[:], ", ")}
}

// ForMemory returns a *PolicyError if a log in memory cannot follow the policy: what has left its ring and every window is
// nowhere to be read again.
func (p Policy) ForMemory() error {
	if p != CatchUp {
		return nil
	}
	return &PolicyError{Name: p.String(), Why: "it needs a durable stream, and an ephemeral one has nothing to catch up from; use " + strings.Join(policyNames[:CatchUp], ", ")}
}

// PolicyError refuses a policy.
type PolicyError struct {
	Name string // as it was given
	Why  string // what is wrong with it, and what to use
}

func (e *PolicyError) Error() string { return fmt.Sprintf("overflow policy %q: %s", e.Name, e.Why) }
