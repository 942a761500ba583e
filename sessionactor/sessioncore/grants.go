package sessioncore

// Action is a right that a request needs.
type Action uint8

const (
	// ActionPublish and the others are spelled as in a token's permissions.
	ActionPublish Action = iota + 1
	ActionSubscribe
	ActionCacheRead
	ActionCacheWrite
	ActionGroupConsume
	ActionGroupManage
)

var actionNames = [...]string{ActionPublish: "stream.publish", ActionSubscribe: "stream.subscribe", ActionCacheRead: "cache.read", ActionCacheWrite: "cache.write",
	ActionGroupConsume: "group.consume", ActionGroupManage: "group.manage"}

func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return "unknown"
}

// Object is what a request touches. Key is set for requests on one cache key, Prefix for those on all keys that begin with it, whether
// they exist or not: that takes a right to the whole cache, or to a prefix that it begins with, and rights to single keys don't add up to
// it. Group is set for requests on one consumer group of a stream.
type Object struct {
	Tenant, Namespace, Name string
	Key                     string
	HasKey                  bool
	Prefix                  string
	HasPrefix               bool
	Group                   string
}

// Grants is what a verified token allows. It never changes once handed out.
type Grants interface {
	// Tenant is the tenant the token is for; Subject its principal.
	Tenant() string
	Subject() string
	// Allows reports whether the action may be taken on the object.
	Allows(a Action, o Object) bool
}
