package reading

import (
	"encoding/binary"
	"fmt"
	"iter"
)

// The body of a commit batch is the event, as the region of one record, and behind it the changes of its entity's state:
//
//	u32 event length | event | u32 entity length | entity | u32 changes | per change:
//	    u8 operation (0 put, 1 delete) | u32 key length | key | of a put: u32 value length | value
//
// Integers are big-endian. A key belongs to an entity: two entities that share a shard do not see each other's keys, however many
// shards a stream has.
const (
	changePut    = 0
	changeDelete = 1

	changeOverhead = 1 + lengthPrefix // of a delete; a put has another lengthPrefix
)

// Change puts a key or deletes it.
type Change struct {
	Delete bool
	Key    []byte
	Value  []byte // of a put
}

// Commit is one decoded commit. Everything in it is borrowed from the body it was decoded from.
type Commit struct {
	Event, Entity []byte

	count   uint32
	changes []byte
}

// Count is how many changes the commit carries.
func (c Commit) Count() int { return int(c.count) }

// Changes yields the changes in their order; a later one of the same key wins.
func (c Commit) Changes() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for rest := c.changes; len(rest) > 0; {
			var change Change
			var err error
			if change, rest, err = nextChange(rest); err != nil {
				panic("reading: a commit that was decoded before: " + err.Error())
			}
			if !yield(change) {
				return
			}
		}
	}
}

// CommitSize is the length of AppendCommit's result.
func CommitSize(event, entity []byte, changes []Change) int {
	size := lengthPrefix + len(event) + lengthPrefix + len(entity) + lengthPrefix
	for _, c := range changes {
		size += changeOverhead + len(c.Key)
		if !c.Delete {
			size += lengthPrefix + len(c.Value)
		}
	}
	return size
}

// AppendCommit appends the batch body of a commit of one event and changes of entity's state. Values of deletes are not written.
func AppendCommit(dst, event, entity []byte, changes []Change) []byte {
	dst = appendBytes(dst, event)
	dst = appendBytes(dst, entity)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(changes)))
	for _, c := range changes {
		if c.Delete {
			dst = append(dst, changeDelete)
			dst = appendBytes(dst, c.Key)
			continue
		}
		dst = append(dst, changePut)
		dst = appendBytes(dst, c.Key)
		dst = appendBytes(dst, c.Value)
	}
	return dst
}

func appendBytes(dst, b []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...)
}

// CommitError says why a batch body is not a commit.
type CommitError struct{ What string }

func (e *CommitError) Error() string { return "decode commit: " + e.What }

// DecodeCommit reads the body of a batch of kind Commit. The result borrows from body. The error is a *CommitError.
func DecodeCommit(body []byte) (Commit, error) {
	var c Commit
	var err error
	rest := body
	if c.Event, rest, err = cutBytes(rest, "event"); err != nil {
		return Commit{}, err
	}
	if c.Entity, rest, err = cutBytes(rest, "entity"); err != nil {
		return Commit{}, err
	}
	if len(rest) < lengthPrefix {
		return Commit{}, &CommitError{What: fmt.Sprintf("%d bytes are too few for the number of changes", len(rest))}
	}
	c.count, c.changes = binary.BigEndian.Uint32(rest), rest[lengthPrefix:]
	rest = c.changes
	for i := uint32(0); i < c.count; i++ {
		if _, rest, err = nextChange(rest); err != nil {
			return Commit{}, fmt.Errorf("change %d of %d: %w", i, c.count, err)
		}
	}
	if len(rest) > 0 {
		return Commit{}, &CommitError{What: fmt.Sprintf("%d bytes follow the last change", len(rest))}
	}
	return c, nil
}

// nextChange cuts one change off.
func nextChange(b []byte) (c Change, rest []byte, err error) {
	if len(b) == 0 {
		return Change{}, nil, &CommitError{What: "it is not there"}
	}
	switch b[0] {
	case changePut:
	case changeDelete:
		c.Delete = true
	default:
		return Change{}, nil, &CommitError{What: fmt.Sprintf("operation %d is neither put nor delete", b[0])}
	}
	if c.Key, rest, err = cutBytes(b[1:], "key"); err != nil || c.Delete {
		return c, rest, err
	}
	c.Value, rest, err = cutBytes(rest, "value")
	return c, rest, err
}

// cutBytes cuts a length and as many bytes off.
func cutBytes(b []byte, what string) (cut, rest []byte, err error) {
	if len(b) < lengthPrefix {
		return nil, nil, &CommitError{What: fmt.Sprintf("%d bytes are too few for the length of the %s", len(b), what)}
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[lengthPrefix:]; uint64(n) > uint64(len(b)) {
		return nil, nil, &CommitError{What: fmt.Sprintf("%s of %d bytes, %d are left", what, n, len(b))}
	}
	return b[:n:n], b[n:], nil
}
