package sessioncore

// Action is a right that a request needs.
type Action uint8

const (
	// ActionPublish and the others are spelled as in a token's permissions.
	ActionPublish Action = iota + 1
	ActionSubscribe
	ActionCacheRead
	ActionCacheWrite
)

var actionNames = [...]string{ActionPublish: "stream.publish", ActionSubscribe: "stream.subscribe", ActionCacheRead: "cache.read", ActionCacheWrite: "cache.write"}

func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return "unknown"
}

// Object is what a request touches. Key is set for requests on one cache key.
type Object struct {
	Tenant, Namespace, Name string
	Key                     string
	HasKey                  bool
}

// Grants is what a verified token allows. It never changes once handed out.
type Grants interface {
	// Tenant is the tenant the token is for; Subject its principal.
	Tenant() string
	Subject() string
	// Allows reports whether the action may be taken on the object.
	Allows(a Action, o Object) bool
}
