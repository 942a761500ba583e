package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/felixd/felixd/controlplane/model"
)

// Marks to test with errors.Is. The types below carry the details.
var (
	// ErrInvalid: the record or patch breaks a rule of the model. The same mark as model.ErrInvalid.
	ErrInvalid = model.ErrInvalid
	// ErrNotFound: the record, or the parent a create needs, does not exist. See NotFoundError.
	ErrNotFound = errors.New("not found")
	// ErrExists: the name is taken by a record of another configuration. See ExistsError.
	ErrExists = errors.New("already exists")
	// ErrUnsupported: the deployment lacks what the record asks for. See UnsupportedError.
	ErrUnsupported = errors.New("not supported by this deployment")
	// ErrFull: a bound on the number of records is reached. See FullError.
	ErrFull = errors.New("catalog is full")
	// ErrCompacted: the changes asked for are no longer kept; take a snapshot. See PositionError.
	ErrCompacted = errors.New("changes are no longer kept")
	// ErrAhead: the position is beyond the last write, so it belongs to another history; take a snapshot. See
	// PositionError.
	ErrAhead = errors.New("position is ahead of the store")
	// ErrConflict: a conditional write found another state than the one it was planned from. Nothing was written.
	ErrConflict = errors.New("state has changed")
	// ErrUnavailable: the store could not answer in time. A write may or may not have happened.
	ErrUnavailable = errors.New("store is unavailable")
)

// NotFoundError names the record that does not exist. It matches ErrNotFound.
type NotFoundError struct {
	Kind model.Kind
	Key  model.ResourceName
}

// Error names kind and key.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s %s does not exist", e.Kind.Singular(), keyText(e.Key))
}

// Is makes it match ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// ExistsError names the record that is in the way and, for streams and caches, the fields that differ. It matches
// ErrExists.
type ExistsError struct {
	Kind    model.Kind
	Key     model.ResourceName
	Differs []string // JSON names; empty for tenants and namespaces, whose creation is never repeated
}

// Error names kind, key and what differs.
func (e *ExistsError) Error() string {
	s := fmt.Sprintf("%s %s exists", e.Kind.Singular(), keyText(e.Key))
	if len(e.Differs) == 0 {
		return s
	}
	return s + " with another configuration: " + strings.Join(e.Differs, ", ") + " differ; delete it first or ask for what it has"
}

// Is makes it match ErrExists.
func (e *ExistsError) Is(target error) bool { return target == ErrExists }

// UnsupportedError says what this deployment cannot do, and how to make it able to. It matches ErrUnsupported.
type UnsupportedError struct {
	Field  string // JSON name of the field that asks for it
	Reason string
}

// Error names field and reason.
func (e *UnsupportedError) Error() string { return e.Field + ": " + e.Reason }

// Is makes it match ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// FullError names the bound that is reached. It matches ErrFull.
type FullError struct {
	What  string // what is counted
	Bound int    // how many there may be
}

// Error names what is counted and the bound.
func (e *FullError) Error() string {
	return fmt.Sprintf("the catalog holds %d %s, which is its bound; delete some first", e.Bound, e.What)
}

// Is makes it match ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// PositionError says why a feed can't be followed from a position. It matches ErrCompacted when Since lies before the
// kept history and ErrAhead when it lies beyond the last write.
type PositionError struct {
	Since  uint64 // the position asked for
	Oldest uint64 // the lowest position that can be followed
	Last   uint64 // Seq of the last write
}

// Error names the three positions.
func (e *PositionError) Error() string {
	if e.Since > e.Last {
		return fmt.Sprintf("position %d is ahead of the last write %d; take a snapshot", e.Since, e.Last)
	}
	return fmt.Sprintf("changes after %d are no longer kept, only those after %d; take a snapshot", e.Since, e.Oldest)
}

// Is makes it match ErrCompacted or ErrAhead.
func (e *PositionError) Is(target error) bool {
	if e.Since > e.Last {
		return target == ErrAhead
	}
	return target == ErrCompacted
}

// SaveError says that a write was not made because the catalog could not be saved; the store goes on with what it held
// before. It matches ErrUnavailable.
type SaveError struct {
	Err error
	// Unknown: the write may be there after a restart all the same, unless another one succeeds before.
	Unknown bool
}

// Error says what failed.
func (e *SaveError) Error() string {
	if e.Unknown {
		return "save the catalog: " + e.Err.Error() + "; the change is not made now, and may be after a restart"
	}
	return "save the catalog: " + e.Err.Error() + "; nothing was changed"
}

// Unwrap is the cause.
func (e *SaveError) Unwrap() error { return e.Err }

// Is makes it match ErrUnavailable.
func (e *SaveError) Is(target error) bool { return target == ErrUnavailable }

func keyText(k model.ResourceName) string {
	s := k.Tenant
	for _, part := range []string{k.Namespace, k.Name} {
		if part != "" {
			s += "/" + part
		}
	}
	return s
}
