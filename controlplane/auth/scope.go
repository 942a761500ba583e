package auth

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/felixd/felixd/controlplane/model"
)

// wild is the wildcard segment. No name, group or node may hold a '*', so it can't be mistaken for one.
const wild = "*"

// groupBytesMax bounds a consumer group named in a scope, in bytes.
const groupBytesMax = 512

// Scope is the object part of a grant: an object, or a pattern over objects of one kind. Only ParseScope makes one, so
// a Scope always obeys the grammar:
//
//	tenant:{t}
//	namespace:{t}/{ns}           namespace:{t}/*
//	stream:{t}/{ns}/{s}          stream:{t}/{ns}/*        stream:{t}/*/*
//	cache:{t}/{ns}/{c}           cache:{t}/{ns}/*         cache:{t}/*/*
//	cache:{t}/{ns}/{c}/{key}     cache:{t}/{ns}/{c}/{prefix}*
//	group:{t}/{ns}/{s}/{g}       and '*' from the right: {s}/*, */*, */*/*
//	cluster:*
//	node:{id}
//
// A '*' segment stands for exactly one whole segment; the '*' that ends a key stands for any rest of the key, which
// may hold '/' and ':'. It is comparable and usable as a map key.
type Scope struct{ o Object }

// ParseScope reads the object part of a permission. The error is a *PermissionError.
func ParseScope(text string) (Scope, error) {
	kind, rest, found := strings.Cut(text, ":")
	if !found {
		return Scope{}, badPermission(text, "the object has no kind: expected kind:name")
	}
	o, problem := parseObject(kind, rest)
	if problem != "" {
		return Scope{}, badPermission(text, problem)
	}
	return Scope{o}, nil
}

func parseObject(kind, rest string) (Object, string) {
	switch kind {
	case "tenant":
		return Object{kind: kindTenant, tenant: rest}, nameProblem(rest)
	case "namespace":
		return parseNamespace(rest)
	case "stream":
		return parseNamed(kindStream, strings.Split(rest, "/"))
	case "cache":
		return parseCache(rest)
	case "group":
		return parseGroup(rest)
	case "cluster":
		if rest != wild {
			return Object{}, "the cluster has one spelling, cluster:*"
		}
		return ClusterObject(), ""
	case "node":
		return NodeObject(rest), nameProblem(rest)
	}
	return Object{}, "the kind of object is not known"
}

func parseNamespace(rest string) (Object, string) {
	t, ns, found := strings.Cut(rest, "/")
	if !found {
		return Object{}, "a namespace needs a tenant: namespace:tenant/name"
	}
	if p := nameProblem(t); p != "" {
		return Object{}, p
	}
	return NamespaceObject(t, ns), wildProblem(ns)
}

// parseNamed reads tenant, namespace and name, where '*' is allowed from the right.
func parseNamed(kind objectKind, parts []string) (Object, string) {
	if len(parts) != 3 {
		return Object{}, fmt.Sprintf("expected tenant/namespace/name, found %d parts", len(parts))
	}
	if p := nameProblem(parts[0]); p != "" {
		return Object{}, p
	}
	for _, part := range parts[1:] {
		if p := wildProblem(part); p != "" {
			return Object{}, p
		}
	}
	if parts[1] == wild && parts[2] != wild {
		return Object{}, "'*' is allowed only from the right"
	}
	return Object{kind: kind, tenant: parts[0], namespace: parts[1], name: parts[2]}, ""
}

func parseCache(rest string) (Object, string) {
	parts := strings.SplitN(rest, "/", 4)
	if len(parts) < 4 {
		return parseNamed(kindCache, parts)
	}
	o, problem := parseNamed(kindCacheKey, parts[:3])
	if problem != "" {
		return Object{}, problem
	}
	if o.namespace == wild || o.name == wild {
		return Object{}, "a key needs a literal namespace and cache"
	}
	key, prefix := strings.CutSuffix(parts[3], wild)
	switch {
	case key == "":
		return Object{}, "the key is empty; leave it out for the whole cache"
	case strings.Contains(key, wild):
		return Object{}, "'*' is allowed only at the end of a key"
	case !utf8.ValidString(key):
		return Object{}, "the key is not UTF-8"
	}
	o.rest = key
	if prefix {
		o.kind = kindCachePrefix
	}
	return o, ""
}

func parseGroup(rest string) (Object, string) {
	parts := strings.Split(rest, "/")
	if len(parts) != 4 {
		return Object{}, fmt.Sprintf("expected tenant/namespace/stream/group, found %d parts", len(parts))
	}
	o, problem := parseNamed(kindGroup, parts[:3])
	if problem != "" {
		return Object{}, problem
	}
	o.rest = parts[3]
	if o.rest == wild {
		return o, ""
	}
	if o.name == wild {
		return Object{}, "'*' is allowed only from the right"
	}
	return o, groupProblem(o.rest)
}

// groupProblem: groups are opaque names, but one with '*', '/' or ':' can't be named in an object by itself.
func groupProblem(g string) string {
	switch {
	case g == "" || len(g) > groupBytesMax:
		return fmt.Sprintf("a group has 1 to %d bytes", groupBytesMax)
	case strings.ContainsAny(g, "*/:"):
		return "a group named here has no '*', '/' or ':'"
	case !utf8.ValidString(g) || strings.ContainsFunc(g, unicode.IsControl):
		return "a group is UTF-8 text without control characters"
	}
	return ""
}

func nameProblem(name string) string {
	if model.ValidName(name) {
		return ""
	}
	return "a part is not a name"
}

func wildProblem(name string) string {
	if name == wild {
		return ""
	}
	return nameProblem(name)
}

// Tenant returns the tenant the scope lies in, and false for the cluster and its nodes, which lie in none.
func (s Scope) Tenant() (string, bool) { return s.o.tenant, s.o.tenant != "" }

// String renders the scope as ParseScope reads it.
func (s Scope) String() string {
	o := s.o
	switch o.kind {
	case kindTenant:
		return "tenant:" + o.tenant
	case kindNamespace:
		return "namespace:" + o.tenant + "/" + o.namespace
	case kindStream:
		return "stream:" + o.tenant + "/" + o.namespace + "/" + o.name
	case kindCache:
		return "cache:" + o.tenant + "/" + o.namespace + "/" + o.name
	case kindCacheKey:
		return "cache:" + o.tenant + "/" + o.namespace + "/" + o.name + "/" + o.rest
	case kindCachePrefix:
		return "cache:" + o.tenant + "/" + o.namespace + "/" + o.name + "/" + o.rest + wild
	case kindGroup:
		return "group:" + o.tenant + "/" + o.namespace + "/" + o.name + "/" + o.rest
	case kindCluster:
		return "cluster:*"
	case kindNode:
		return "node:" + o.name
	}
	return ""
}
