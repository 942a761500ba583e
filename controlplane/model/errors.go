package model

import (
	"errors"
	"fmt"
)

// ErrInvalid marks every refusal of this package that is the caller's mistake: errors.Is(err, ErrInvalid) holds for
// *FieldError and *NameError whatever wraps them.
var ErrInvalid = errors.New("invalid metadata")

// FieldError says which field of a request or record is wrong, what is wrong with it and what to do instead.
type FieldError struct {
	Field   string // JSON path of the field, such as "retention.max_age_seconds"
	Problem string // what is wrong, quoting at most 64 bytes of the value
	Advice  string // what would be accepted
}

// Error renders field, problem and advice as one sentence.
func (e *FieldError) Error() string { return e.Field + " " + e.Problem + "; " + e.Advice }

// Is makes every FieldError match ErrInvalid.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

// NameError says that a tenant, namespace, stream, cache or region name breaks the name grammar of CheckName.
type NameError struct {
	Field   string // JSON name of the field that holds the name
	Problem string // what is wrong, quoting at most 64 bytes of the name
}

// Error renders the field, the problem and the whole grammar.
func (e *NameError) Error() string {
	return fmt.Sprintf("%s %s; a name has 1 to %d characters from letters, digits, '-', '_' and '.', the first a letter or digit",
		e.Field, e.Problem, NameBytesMax)
}

// Is makes every NameError match ErrInvalid.
func (e *NameError) Is(target error) bool { return target == ErrInvalid }

// quoteBytesMax bounds how much of a foreign value an error repeats, so that a 1 MiB name never becomes a 1 MiB log line.
const quoteBytesMax = 64

// quote renders s for an error text, cut to quoteBytesMax bytes and escaped.
func quote(s string) string {
	if len(s) > quoteBytesMax {
		return fmt.Sprintf("%q... (%d bytes)", s[:quoteBytesMax], len(s))
	}
	return fmt.Sprintf("%q", s)
}
