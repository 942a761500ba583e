package client

import (
	"fmt"
	"unicode/utf8"

	"github.com/felixd/felixd/wire"
)

// checkNames refuses what cannot travel. What a good name is, the broker decides.
func checkNames(op, namespace, kind, name string) error {
	if err := checkName(op, "namespace", namespace); err != nil {
		return err
	}
	return checkName(op, kind, name)
}

func checkName(op, argument, name string) error {
	switch {
	case name == "":
		return &ArgumentError{Op: op, Argument: argument, Problem: "is empty; give its name"}
	case len(name) > wire.MaxNameBytes:
		return &ArgumentError{Op: op, Argument: argument,
			Problem: fmt.Sprintf("has %d bytes; at most %d are allowed", len(name), wire.MaxNameBytes)}
	case !utf8.ValidString(name):
		return &ArgumentError{Op: op, Argument: argument, Problem: "is not valid UTF-8"}
	}
	return nil
}

// checkCacheKey refuses keys that JSON would change on the way.
func checkCacheKey(op, key string) error {
	switch {
	case len(key) > wire.MaxCacheKeyBytes:
		return &ArgumentError{Op: op, Argument: "key",
			Problem: fmt.Sprintf("has %d bytes; at most %d are allowed", len(key), wire.MaxCacheKeyBytes)}
	case !utf8.ValidString(key):
		return &ArgumentError{Op: op, Argument: "key", Problem: "is not valid UTF-8"}
	}
	return nil
}
