package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/felixd/felixd/controlplane/auth"
)

// ofTenant returns who asks about something of the path's tenant. The token is judged by that tenant's keys.
func (c *call) ofTenant() (*auth.Principal, error) {
	token, err := bearer(c.r.Header)
	if err != nil {
		return nil, err
	}
	p, err := c.Verifier.Verify(token, c.r.PathValue("tenant"), auth.AudienceControlPlane, c.Clock())
	return p, c.refused(err)
}

// mustManageTenants lets through who may manage the tenants of the cluster. The token is judged by the keys of the
// tenant it names itself; that tenant confers nothing else.
func (c *call) mustManageTenants() error {
	token, err := bearer(c.r.Header)
	if err != nil {
		return err
	}
	p, err := c.Verifier.VerifyOwn(token, auth.AudienceControlPlane, c.Clock())
	if err != nil {
		return c.refused(err)
	}
	return must(p, auth.TenantManage, auth.ClusterObject())
}

// refused turns what the verifier said into the answer. The reason goes to the log at debug level only: anybody can
// make this happen, at any rate.
func (c *call) refused(err error) error {
	var refusal *auth.TokenError
	if !errors.As(err, &refusal) {
		return err
	}
	c.Logger.Debug("token refused", "reason", string(refusal.Reason), "claim", refusal.Claim)
	return unauthenticated(refusal.Error())
}

// must returns the 403 unless p may do action to o.
func must(p *auth.Principal, action auth.Action, o auth.Object) error {
	if p.Permissions.Allows(action, o) {
		return nil
	}
	return forbidden(action, o)
}

// mustSomewhere returns the 403 unless p may do action to anything inside scope.
func mustSomewhere(p *auth.Principal, action auth.Action, scope auth.Object) error {
	if p.Permissions.MayAllow(action, scope) {
		return nil
	}
	return &Error{Status: http.StatusForbidden, Code: CodeForbidden,
		Message: "forbidden: needs " + string(action) + " over something in " + scope.String()}
}

// bearer takes the token from the Authorization header (RFC 6750, section 2.1).
func bearer(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", unauthenticated("unauthorized: send one Authorization header with a bearer token")
	}
	scheme, token, found := strings.Cut(values[0], " ")
	if !found || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", unauthenticated("unauthorized: the Authorization header holds no bearer token")
	}
	return token, nil
}

func unauthenticated(message string) error {
	return &Error{Status: http.StatusUnauthorized, Code: CodeUnauthenticated, Message: message}
}
