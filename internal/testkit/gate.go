package testkit

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// Gate authenticates for a broker in the test's own process: it takes one token of one tenant, whose bearer may do everything in that tenant.
type Gate struct{ Tenant, Token string }

// Authenticate implements sessionactor.Authenticator.
func (g Gate) Authenticate(tenant, token string, _ time.Time) (sessioncore.Grants, *wire.Refusal) {
	if tenant == g.Tenant && subtle.ConstantTimeCompare([]byte(token), []byte(g.Token)) == 1 {
		return everything{g.Tenant}, nil
	}
	f := wire.Refuse(wire.CodeUnauthenticated, "unauthorized: token rejected")
	return nil, &f
}

type everything struct{ tenant string }

func (e everything) Tenant() string                                   { return e.tenant }
func (everything) Subject() string                                    { return "tester" }
func (everything) Allows(sessioncore.Action, sessioncore.Object) bool { return true }

// RandomSeed seeds what a node does at random.
func RandomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}

// Sum is a counter or gauge of a broker in the test's own process, over all its labels. There must be one of that name.
func Sum(t testing.TB, registry prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	for _, f := range Must(registry.Gather())(t) {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return sum
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
