package client

import (
	"fmt"
	"unicode/utf8"

	"github.com/felixd/felixd/wire"
)

// checkNames refuses what cannot travel. What a good name is, the broker decides.
func checkNames(op, namespace, kind, name string) error {
	if problem := nameProblem(namespace); problem != "" {
		return &ArgumentError{Op: op, Argument: "namespace", Problem: problem}
	}
	if problem := nameProblem(name); problem != "" {
		return &ArgumentError{Op: op, Argument: kind, Problem: problem}
	}
	return nil
}

// nameProblem says what is wrong with a name; empty for nothing.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "is empty; give its name"
	case len(name) > wire.MaxNameBytes:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(name), wire.MaxNameBytes)
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	}
	return ""
}

// cacheKeyProblem says what is wrong with a cache key, which JSON must not change on the way; empty for nothing.
func cacheKeyProblem(key string) string {
	switch {
	case len(key) > wire.MaxCacheKeyBytes:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(key), wire.MaxCacheKeyBytes)
	case !utf8.ValidString(key):
		return "is not valid UTF-8"
	}
	return ""
}
