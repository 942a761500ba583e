package main

import (
	"time"

	"github.com/felixd/felixd/controlplane/auth"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// authenticator lets sessions verify tokens without knowing how tokens are made.
type authenticator struct{ verifier *auth.Verifier }

// Authenticate implements sessionactor.Authenticator.
func (a authenticator) Authenticate(tenant, token string, now time.Time) (sessioncore.Grants, *wire.Refusal) {
	p, err := a.verifier.Verify(token, tenant, auth.AudienceBroker, now)
	if err != nil {
		f := wire.Refuse(wire.CodeUnauthenticated, err.Error())
		return nil, &f
	}
	return grants{p}, nil
}

// grants shows a principal's permissions to a session.
type grants struct{ p *auth.Principal }

func (g grants) Tenant() string  { return g.p.Tenant }
func (g grants) Subject() string { return g.p.Subject }

// Allows implements sessioncore.Grants.
func (g grants) Allows(a sessioncore.Action, o sessioncore.Object) bool {
	switch a {
	case sessioncore.ActionPublish:
		return g.p.Permissions.Allows(auth.StreamPublish, auth.StreamObject(o.Tenant, o.Namespace, o.Name))
	case sessioncore.ActionSubscribe:
		return g.p.Permissions.Allows(auth.StreamSubscribe, auth.StreamObject(o.Tenant, o.Namespace, o.Name))
	case sessioncore.ActionCacheRead:
		if o.HasPrefix { // a watch of all keys that begin with it
			return g.p.Permissions.Allows(auth.CacheRead, auth.CachePrefixObject(o.Tenant, o.Namespace, o.Name, o.Prefix))
		}
		return g.p.Permissions.Allows(auth.CacheRead, keyObject(o))
	case sessioncore.ActionCacheWrite:
		return g.p.Permissions.Allows(auth.CacheWrite, keyObject(o))
	case sessioncore.ActionGroupConsume:
		return g.p.Permissions.Allows(auth.GroupConsume, auth.GroupObject(o.Tenant, o.Namespace, o.Name, o.Group))
	case sessioncore.ActionGroupManage:
		return g.p.Permissions.Allows(auth.GroupManage, auth.GroupObject(o.Tenant, o.Namespace, o.Name, o.Group))
	}
	return false
}

// keyObject is one key of a cache. No grant of keys names the empty one, so that it takes a grant of the cache.
func keyObject(o sessioncore.Object) auth.Object {
	if o.Key == "" {
		return auth.CachePrefixObject(o.Tenant, o.Namespace, o.Name, "")
	}
	return auth.CacheKeyObject(o.Tenant, o.Namespace, o.Name, o.Key)
}
