package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"

	"github.com/felixd/felixd/client"
)

// Exit codes.
const (
	exitOK          = 0
	exitOther       = 1
	exitUsage       = 2 // bad arguments, a missing setting, a missing confirmation
	exitUnreachable = 3 // nothing could be reached, or the connection was lost
	exitRefused     = 4 // a broker, the control plane or the fault door refused
	exitNotFound    = 5 // key, resource or actor does not exist
)

// usageError is a mistake on the command line or in the settings.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// absentError says that a key does not exist.
type absentError struct{ what string }

func (e *absentError) Error() string { return e.what + " does not exist" }

// exitCode finds the exit code of an error.
func exitCode(err error) int {
	var usage *usageError
	var argument *client.ArgumentError
	var absent *absentError
	var api *apiError
	var door *faultRefusal
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &door):
		return door.exit()
	case errors.As(err, &usage), errors.As(err, &argument):
		return exitUsage
	case errors.As(err, &absent), errors.Is(err, client.ErrNotFound), errors.As(err, &api) && api.Status == http.StatusNotFound:
		return exitNotFound
	case errors.As(err, &api), isRefusal(err):
		return exitRefused
	case errors.Is(err, context.Canceled): // interrupted
		return exitOther
	case isUnreachable(err):
		return exitUnreachable
	}
	return exitOther
}

// isRefusal reports whether a broker said no.
func isRefusal(err error) bool {
	var refused *client.BrokerError
	var leader *client.NotLeaderError
	var cursor *client.CursorError
	var sequence *client.SequenceError
	var condition *conditionError
	return errors.As(err, &refused) || errors.As(err, &leader) || errors.As(err, &cursor) || errors.As(err, &sequence) ||
		errors.As(err, &condition) ||
		errors.Is(err, client.ErrOffsetMismatch) || errors.Is(err, client.ErrUnsupported)
}

// isUnreachable reports whether nobody answered, or stopped to.
func isUnreachable(err error) bool {
	var file *fs.PathError // an error of the system, like one of the network, and nobody was to be reached
	var network net.Error
	var request *url.Error
	if errors.As(err, &file) {
		return false
	}
	return errors.Is(err, client.ErrUnreachable) || errors.Is(err, client.ErrConnectionLost) ||
		errors.As(err, &request) || errors.As(err, &network)
}
