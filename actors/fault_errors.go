package actors

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrInjected is the value of a panic that Faults.Crash caused.
	ErrInjected = errors.New("crash injected through the fault door")
	// ErrUnknownActor says that no live actor has that path. The error carrying it is an *UnknownActorError.
	ErrUnknownActor = errors.New("no such actor")
	// ErrBadFault marks a duration or a limit out of range. The error carrying it is a *BadFaultError.
	ErrBadFault = errors.New("not a valid fault")
)

// UnknownActorError names a path that no live actor has. errors.Is(err, ErrUnknownActor) holds.
type UnknownActorError struct {
	Path string
	Near string // a live actor whose path looks like it; empty when none does
}

// Error asks whether the near one was meant.
func (e *UnknownActorError) Error() string {
	if e.Near == "" {
		return fmt.Sprintf("%v as %q; list them to see the paths", ErrUnknownActor, e.Path)
	}
	return fmt.Sprintf("%v as %q; did you mean %q?", ErrUnknownActor, e.Path, e.Near)
}

// Is makes errors.Is(err, ErrUnknownActor) hold.
func (e *UnknownActorError) Is(target error) bool { return target == ErrUnknownActor }

// BadFaultError tells which bound a fault or a listing breaks. errors.Is(err, ErrBadFault) holds.
type BadFaultError struct {
	What  string // what is out of range, e.g. how long it lasts
	Got   string
	Range string // what may be given
}

// Error names what was given and what may be.
func (e *BadFaultError) Error() string {
	return fmt.Sprintf("%v: %s is %s: use %s", ErrBadFault, e.What, e.Got, e.Range)
}

// Is makes errors.Is(err, ErrBadFault) hold.
func (e *BadFaultError) Is(target error) bool { return target == ErrBadFault }

func checkFaultTime(do FaultAction, what string, d time.Duration) error {
	if d > 0 && d <= FaultTimeMax {
		return nil
	}
	return fmt.Errorf("fault %s: %w", do, &BadFaultError{What: what, Got: d.String(), Range: fmt.Sprintf("more than 0 and at most %v", FaultTimeMax)})
}
