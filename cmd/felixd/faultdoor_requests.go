package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/felixd/felixd/actors"
)

// faultRequest is one line to the fault door.
type faultRequest struct {
	Do    string `json:"do"` // ls, crash, pause, slow, heal
	Actor string `json:"actor"`
	MS    int64  `json:"ms"`     // pause: how long. slow: what each turn waits
	ForMS int64  `json:"for_ms"` // slow: how long
	After string `json:"after"`  // ls: the path before the first one wanted
	Limit int    `json:"limit"`  // ls: actors in the answer; 0 is as many as there may be
}

// faultDone is the answer to what was done.
type faultDone struct {
	Do    string `json:"do"`
	Actor string `json:"actor"`
}

// faultPage is the answer to ls.
type faultPage struct {
	Actors []faultActor `json:"actors"`
	Next   string       `json:"next,omitempty"` // there are more: ask again with this as after
}

// faultActor is one actor of a page. Times are what is left, in milliseconds, rounded up.
type faultActor struct {
	Actor     string `json:"actor"`
	Kind      string `json:"kind"`
	Tenant    string `json:"tenant,omitempty"`
	Items     int    `json:"items"` // messages queued
	Bytes     int    `json:"bytes"` // their bytes
	PausedMS  int64  `json:"paused_ms,omitempty"`
	SlowMS    int64  `json:"slow_ms,omitempty"`
	SlowForMS int64  `json:"slow_for_ms,omitempty"`
	Stopping  bool   `json:"stopping,omitempty"`
}

// faultError is the answer to what was refused. Code is unknown_actor, actor_stopped, invalid_request, too_long or busy.
type faultError struct {
	Code    string `json:"error"`
	Actor   string `json:"actor"`
	Message string `json:"message"`
	Near    string `json:"near,omitempty"` // unknown_actor: the one that was probably meant
}

// faultLine is an answer with its newline.
func faultLine(answer any) []byte {
	line, err := json.Marshal(answer)
	if err != nil {
		panic(fmt.Sprintf("felixd: an answer of the fault door does not encode: %v", err)) // all answers are the plain structs above
	}
	return append(line, '\n')
}

// performFault does what a line asks for and returns the answer: a faultDone, faultPage or faultError.
func performFault(f actors.Faults, line []byte) any {
	r, err := readFault(line)
	if err == nil && r.Do == "ls" {
		var page faultPage
		if page, err = listFaults(f, r); err == nil {
			return page
		}
	} else if err == nil {
		err = doFault(f, r)
	}
	if err != nil {
		return refuseFault(r.Actor, err)
	}
	return faultDone{Do: r.Do, Actor: r.Actor}
}

// readFault decodes a line strictly: a member that is misspelled, or means nothing with this action, is refused and not ignored.
func readFault(line []byte) (r faultRequest, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return faultRequest{}, fmt.Errorf("the line is no request: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return faultRequest{}, errors.New("the line goes on behind its object")
	}
	takes := map[string]faultRequest{ // what each action takes: 1 stands for any value
		"ls": {After: "1", Limit: 1}, "crash": {Actor: "1"}, "heal": {Actor: "1"}, "pause": {Actor: "1", MS: 1}, "slow": {Actor: "1", MS: 1, ForMS: 1},
	}
	may, ok := takes[r.Do]
	if !ok {
		return r, fmt.Errorf(`do is %q: use ls, crash, pause, slow or heal`, r.Do)
	}
	for _, m := range [...]struct {
		name       string
		given, may bool
	}{
		{"actor", r.Actor != "", may.Actor != ""}, {"ms", r.MS != 0, may.MS != 0}, {"for_ms", r.ForMS != 0, may.ForMS != 0},
		{"after", r.After != "", may.After != ""}, {"limit", r.Limit != 0, may.Limit != 0},
	} {
		if m.given && !m.may {
			return r, fmt.Errorf("%s takes no %s", r.Do, m.name)
		}
	}
	return r, nil
}

func doFault(f actors.Faults, r faultRequest) error {
	switch actors.FaultAction(r.Do) {
	case actors.FaultCrash:
		return f.Crash(r.Actor)
	case actors.FaultHeal:
		return f.Heal(r.Actor)
	case actors.FaultPause:
		d, err := faultTime("ms", r.MS)
		if err != nil {
			return err
		}
		return f.Pause(r.Actor, d)
	case actors.FaultSlow:
		by, wrongBy := faultTime("ms", r.MS)
		lasts, wrongFor := faultTime("for_ms", r.ForMS)
		if err := errors.Join(wrongBy, wrongFor); err != nil {
			return err
		}
		return f.Slow(r.Actor, by, lasts)
	}
	panic("felixd: the fault door admits an action it does not know: " + r.Do) // readFault admits the ones above
}

// faultTime is a duration of a request, in the member's own name and unit.
func faultTime(member string, ms int64) (time.Duration, error) {
	if most := actors.FaultTimeMax.Milliseconds(); ms < 1 || ms > most {
		return 0, fmt.Errorf("%s is %d: use 1 to %d", member, ms, most)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func listFaults(f actors.Faults, r faultRequest) (faultPage, error) {
	if r.Limit == 0 {
		r.Limit = actors.FaultListMax
	}
	list, more, err := f.List(r.After, r.Limit)
	if err != nil {
		return faultPage{}, err
	}
	page := faultPage{Actors: make([]faultActor, 0, len(list))}
	for _, a := range list {
		page.Actors = append(page.Actors, faultActor{
			Actor: a.Path, Kind: a.Kind, Tenant: a.Tenant, Items: a.MailboxItems, Bytes: a.MailboxBytes,
			PausedMS: ceilMillis(a.PausedFor), SlowMS: ceilMillis(a.SlowBy), SlowForMS: ceilMillis(a.SlowFor), Stopping: a.Stopping,
		})
	}
	if more {
		page.Next = list[len(list)-1].Path
	}
	return page, nil
}

func ceilMillis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

func refuseFault(actor string, err error) faultError {
	e := faultError{Code: "invalid_request", Actor: actor, Message: err.Error()}
	var unknown *actors.UnknownActorError
	var bad *actors.BadFaultError
	switch {
	case errors.As(err, &unknown):
		e.Code, e.Near, e.Message = "unknown_actor", unknown.Near, unknown.Error()
	case errors.As(err, &bad):
		e.Message = bad.Error()
	case errors.Is(err, actors.ErrStopped):
		e.Code, e.Message = "actor_stopped", "the actor is about to end; one that takes its place has the same path"
	}
	return e
}
