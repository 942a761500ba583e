// Package auth decides who somebody is and what they may do: it mints and verifies access tokens (RFC 7519, signed
// with Ed25519 as in RFC 8037) and matches the permissions inside them against the objects of a request.
//
// The package holds no clock: whoever asks says what time it is. Three rules hold everywhere:
//
//   - A token of one tenant is worth nothing in another, even where two tenants share a key by mistake.
//   - What can't be read completely grants nothing: one unknown action refuses the whole token.
//   - No error repeats any part of a token or key.
package auth
