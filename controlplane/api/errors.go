package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

// Code is the stable, machine-readable part of an error answer.
type Code string

// The codes of this package.
const (
	CodeInvalidRequest     Code = "invalid_request"     // 400: grammar, field or query
	CodeInvalidName        Code = "invalid_name"        // 400: a name breaks the grammar of names
	CodeUnauthenticated    Code = "unauthenticated"     // 401
	CodeForbidden          Code = "forbidden"           // 403
	CodeNotFound           Code = "not_found"           // 404: the resource, or the route
	CodeMethodNotAllowed   Code = "method_not_allowed"  // 405
	CodeAlreadyExists      Code = "already_exists"      // 409
	CodeConflict           Code = "conflict"            // 409: the state changed meanwhile
	CodeCatalogFull        Code = "catalog_full"        // 409
	CodeDurableUnsupported Code = "durable_unsupported" // 409
	CodeBodyTooLarge       Code = "body_too_large"      // 413
	CodeInternal           Code = "internal"            // 500
	CodeUnavailable        Code = "unavailable"         // 503; after a write: unknown, not failed
)

// Error is an answer other than success. It is what the body of one decodes into; Message is for people and may
// change, Code does not.
type Error struct {
	Status  int            `json:"-"` // HTTP status; not in the body
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Detail  map[string]any `json:"detail,omitempty"`

	allow string // Allow header of a 405
	retry bool   // whether to send Retry-After
}

// Error renders code and message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

var internalError = &Error{Status: http.StatusInternalServerError, Code: CodeInternal, Message: "something went wrong here; it was logged"}

// asError finds the answer for what an endpoint returned.
func asError(err error) *Error {
	var answer *Error
	if errors.As(err, &answer) {
		return answer
	}
	var name *model.NameError
	var field *model.FieldError
	switch {
	case errors.As(err, &name):
		return &Error{Status: http.StatusBadRequest, Code: CodeInvalidName, Message: name.Error(), Detail: map[string]any{"field": name.Field}}
	case errors.As(err, &field):
		return &Error{Status: http.StatusBadRequest, Code: CodeInvalidRequest, Message: field.Error(), Detail: map[string]any{"field": field.Field}}
	}
	return asStateError(err)
}

// asStateError finds the answer for what the store returned.
func asStateError(err error) *Error {
	var exists *store.ExistsError
	var unsupported *store.UnsupportedError
	var save *store.SaveError
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &Error{Status: http.StatusNotFound, Code: CodeNotFound, Message: err.Error()}
	case errors.As(err, &exists):
		e := &Error{Status: http.StatusConflict, Code: CodeAlreadyExists, Message: err.Error()}
		if len(exists.Differs) > 0 {
			e.Detail = map[string]any{"differs": exists.Differs}
		}
		return e
	case errors.As(err, &unsupported):
		return &Error{Status: http.StatusConflict, Code: Code(unsupported.Field + "_unsupported"), Message: err.Error(),
			Detail: map[string]any{"field": unsupported.Field}}
	case errors.Is(err, store.ErrFull):
		return &Error{Status: http.StatusConflict, Code: CodeCatalogFull, Message: err.Error()}
	case errors.Is(err, store.ErrConflict):
		return &Error{Status: http.StatusConflict, Code: CodeConflict, Message: err.Error()}
	case errors.As(err, &save):
		return &Error{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, retry: true, Message: saveMessage(save)}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &Error{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, retry: true,
			Message: "the store did not answer in time; whether a write happened is not known, so look before trying again"}
	}
	return internalError
}

// saveMessage tells a client what became of its write; the cause is for the log.
func saveMessage(e *store.SaveError) string {
	if e.Unknown {
		return "the catalog could not be saved; the change is not made, but may be there after a restart: look before trying again"
	}
	return "the catalog could not be saved; nothing was changed"
}

// writeError answers with err and logs what only operators may see.
func (a *api) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := asError(err)
	var save *store.SaveError
	if e == internalError && err != error(internalError) || errors.As(err, &save) {
		a.Logger.Error("request failed", "method", r.Method, "error", err)
	}
	switch e.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="felix"`)
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", e.allow)
	}
	if e.retry {
		w.Header().Set("Retry-After", "1")
	}
	a.write(w, e.Status, e)
}

// write sends status and body as JSON; a nil body as nothing.
func (a *api) write(w http.ResponseWriter, status int, body any) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if body == nil {
		w.WriteHeader(status)
		return
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic("api: an answer can't be rendered as JSON: " + err.Error())
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(append(text, '\n')); err != nil {
		a.Logger.Debug("answer not sent", "error", err)
	}
}
