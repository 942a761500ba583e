package model

import (
	"encoding/binary"
	"fmt"
	"io"
)

// ResourceKind tells the two kinds of sharded resource apart wherever a name alone would be ambiguous: a stream and a
// cache of one namespace may share a name.
type ResourceKind string

// The kinds, spelled as the API and shard keys spell them.
const (
	ResourceStream ResourceKind = "stream"
	ResourceCache  ResourceKind = "cache"
)

// ResourceName is the full name of a stream or a cache. It is comparable and usable as a map key.
type ResourceName struct {
	Tenant    string
	Namespace string
	Name      string
}

// String renders tenant/namespace/name, for people and logs only: it is not parsed anywhere.
func (n ResourceName) String() string { return n.Tenant + "/" + n.Namespace + "/" + n.Name }

// Compare orders names by tenant, then namespace, then name, bytewise.
func (n ResourceName) Compare(o ResourceName) int {
	if c := compareText(n.Tenant, o.Tenant); c != 0 {
		return c
	}
	if c := compareText(n.Namespace, o.Namespace); c != 0 {
		return c
	}
	return compareText(n.Name, o.Name)
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Incarnation tells two resources of the same name apart when the first was deleted and the name used again. It is
// drawn once, at creation, and never changes. Zero is no incarnation.
type Incarnation uint64

// incarnationMask keeps an incarnation within 53 bits, so that JSON readers which hold numbers as IEEE doubles show
// and return it exactly (RFC 8259, section 6).
const incarnationMask = 1<<53 - 1

// NewIncarnation draws an incarnation in 1..2^53-1 from source, which must be a good source of random bytes. It fails
// only when source fails, or yields zero eight times in a row, which a working source never does.
func NewIncarnation(source io.Reader) (Incarnation, error) {
	var b [8]byte
	for range 8 {
		if _, err := io.ReadFull(source, b[:]); err != nil {
			return 0, fmt.Errorf("draw incarnation: %w", err)
		}
		if v := binary.BigEndian.Uint64(b[:]) & incarnationMask; v != 0 {
			return Incarnation(v), nil
		}
	}
	return 0, fmt.Errorf("draw incarnation: the source of random bytes yields only zeros")
}
