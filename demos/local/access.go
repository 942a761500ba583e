package local

import (
	"crypto/subtle"
	"time"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// gatekeeper takes the one token that the broker made for its demo.
type gatekeeper struct{ tenant, token string }

// Authenticate implements sessionactor.Authenticator.
func (g gatekeeper) Authenticate(tenant, token string, _ time.Time) (sessioncore.Grants, *wire.Refusal) {
	if tenant == g.tenant && subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1 {
		return everything{tenant}, nil
	}
	f := wire.Refuse(wire.CodeUnauthenticated, "unauthorized: token rejected; use the one of Broker.Client")
	return nil, &f
}

// everything allows all requests in the demo's tenant.
type everything struct{ tenant string }

func (e everything) Tenant() string                                   { return e.tenant }
func (everything) Subject() string                                    { return "demo" }
func (everything) Allows(sessioncore.Action, sessioncore.Object) bool { return true }
