package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Permission is one grant: an action over a scope. Only ParsePermission makes one, so the action is known and fits the
// kind of object. It is comparable.
type Permission struct {
	Action Action
	Scope  Scope
}

// ParsePermission reads "action:object", split at the first ':'. The error is a *PermissionError.
func ParsePermission(text string) (Permission, error) {
	action, object, found := strings.Cut(text, ":")
	if !found {
		return Permission{}, badPermission(text, "expected action:object")
	}
	kinds := Action(action).kindsOf()
	if kinds == nil {
		return Permission{}, badPermission(text, "the action is not known")
	}
	scope, err := ParseScope(object)
	if err != nil {
		return Permission{}, err
	}
	if !slices.Contains(kinds, scope.o.kind) {
		return Permission{}, badPermission(text, "the action can't be granted over this kind of object")
	}
	return Permission{Action: Action(action), Scope: scope}, nil
}

// String renders the permission as ParsePermission reads it.
func (p Permission) String() string { return string(p.Action) + ":" + p.Scope.String() }

// PermissionError says why a permission string is refused. It quotes at most 64 bytes of it.
type PermissionError struct {
	Text    string // the permission, or its object part, cut to 64 bytes
	Problem string
}

// Error quotes the permission and names the problem.
func (e *PermissionError) Error() string { return fmt.Sprintf("permission %q: %s", e.Text, e.Problem) }

func badPermission(text, problem string) *PermissionError {
	const most = 64
	return &PermissionError{Text: text[:min(len(text), most)], Problem: problem}
}

// ExpandForMint returns the permissions a principal that was granted held carries in its tokens: held, and for
// management of a tenant or namespace the management and use of everything inside. Nothing else ever expands: not the
// rights over rules, nodes, the cluster, consumer groups or delegation. The result is sorted and without repetition.
func ExpandForMint(held []Permission) []Permission {
	out := slices.Clone(held)
	for _, p := range held {
		o := p.Scope.o
		switch {
		case p.Action == TenantManage && o.kind == kindTenant:
			out = append(out, Permission{NamespaceManage, Scope{NamespaceObject(o.tenant, wild)}})
			out = appendInside(out, o.tenant, wild)
		case p.Action == NamespaceManage:
			out = appendInside(out, o.tenant, o.namespace)
		}
	}
	return sortPermissions(out)
}

func appendInside(out []Permission, tenant, namespace string) []Permission {
	streams := Scope{StreamObject(tenant, namespace, wild)}
	caches := Scope{CacheObject(tenant, namespace, wild)}
	return append(out,
		Permission{StreamManage, streams}, Permission{StreamPublish, streams}, Permission{StreamSubscribe, streams},
		Permission{CacheManage, caches}, Permission{CacheRead, caches}, Permission{CacheWrite, caches})
}

// sortPermissions returns ps ordered by text, without repetition.
func sortPermissions(ps []Permission) []Permission {
	type spelled struct {
		text string
		p    Permission
	}
	all := make([]spelled, len(ps))
	for i, p := range ps {
		all[i] = spelled{p.String(), p}
	}
	slices.SortFunc(all, func(a, b spelled) int { return strings.Compare(a.text, b.text) })
	out := make([]Permission, 0, len(all))
	for i, s := range all {
		if i == 0 || s.text != all[i-1].text {
			out = append(out, s.p)
		}
	}
	return out
}
