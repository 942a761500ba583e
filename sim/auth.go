package main

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

// authenticate sends a token and waits for the answer; false when the stream is over or the token was not taken.
func (t *talk) authenticate(token string) bool {
	auth := &wire.Auth{TenantID: t.c.tenant, Token: token + " " + t.c.tenant}
	t.c.offer(auth)
	done := false
	a := &ask{what: "auth", mayEnd: token == "bad"}
	a.take = func(got answer) error {
		switch got.message.(type) {
		case *wire.AuthOK:
			done = auth.ClientFlags.Set
		case *wire.OK:
			done = !auth.ClientFlags.Set
		case *wire.ErrorAnswer:
			if token == "bad" || t.c.run.calm {
				t.mayEnd = true
				return nil
			}
		}
		if !done || token == "bad" {
			return fmt.Errorf("answered %s", got)
		}
		return nil
	}
	return t.request(wire.AppendJSONFrame(nil, auth), a) && t.idle() && done
}

// authFrame is the auth of a stream that gets no answers.
func (c *client) authFrame() []byte {
	auth := &wire.Auth{TenantID: c.tenant, Token: "good " + c.tenant}
	c.offer(auth)
	return wire.AppendJSONFrame(nil, auth)
}
