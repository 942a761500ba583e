package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/felixd/felixd/controlplane/model"
)

// BodyBytesMax bounds a request body.
const BodyBytesMax = 1 << 20

// readBody reads the whole body, up to BodyBytesMax bytes and no more, whatever length was declared.
func (c *call) readBody() ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, BodyBytesMax))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &Error{Status: http.StatusRequestEntityTooLarge, Code: CodeBodyTooLarge,
			Message: fmt.Sprintf("the body is larger than %d bytes", BodyBytesMax)}
	case err != nil:
		return nil, invalid("the body could not be read completely")
	}
	return body, nil
}

// named returns the string under key in the body's object, or "" where there is none. It judges nothing else: it finds
// the object a permission is needed for before the body as a whole is judged.
func named(body []byte, key string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return ""
	}
	var name string
	if json.Unmarshal(fields[key], &name) != nil {
		return ""
	}
	return name
}

// decode reads one JSON object into dst and refuses fields dst does not have, each by name. Fields listed in immutable
// get a sentence of their own.
func decode(body []byte, dst any, immutable ...string) error {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	switch {
	case len(trimmed) == 0:
		return invalid("the body is empty; send a JSON object")
	case trimmed[0] != '{':
		return invalid("the body is not a JSON object")
	case !utf8.Valid(body):
		return invalid("the body is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		return decodeError(err, immutable)
	}
	if _, err := d.Token(); err != io.EOF {
		return invalid("the body goes on after its JSON object")
	}
	return nil
}

// decodeError says in our words what encoding/json found.
func decodeError(err error, immutable []string) error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, model.ErrInvalid):
		return err
	case errors.As(err, &syntax):
		return invalid(fmt.Sprintf("the body is not JSON: %v at byte %d", syntax, syntax.Offset))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("the body ends inside its JSON object")
	case errors.As(err, &wrong):
		return &model.FieldError{Field: wrong.Field, Problem: "is a JSON " + wrong.Value, Advice: "use a " + wrong.Type.String()}
	}
	if field, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return unknownField(strings.Trim(field, `"`), immutable)
	}
	return invalid("the body can't be read")
}

func unknownField(field string, immutable []string) error {
	if slices.Contains(immutable, field) {
		return &model.FieldError{Field: field, Problem: "can't be changed after creation", Advice: "leave it out, or delete the resource and create it anew"}
	}
	const most = 64
	return &model.FieldError{Field: field[:min(len(field), most)], Problem: "is not a field of this request", Advice: "leave it out"}
}

func invalid(message string) error {
	return &Error{Status: http.StatusBadRequest, Code: CodeInvalidRequest, Message: message}
}
