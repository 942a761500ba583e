package auth

import "time"

// Principal is who a verified token speaks for. It is immutable and may be shared.
type Principal struct {
	Tenant      string
	Subject     string
	TokenID     string    // jti: names the token in logs; empty where the token has none
	Expires     time.Time // exp, without leeway
	Permissions Permissions
}
