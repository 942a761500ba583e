// Package store keeps the metadata of the control plane: who may exist (tenants, namespaces) and what was defined
// (streams, caches), with one total order over all writes.
//
// Store is the contract; every implementation passes the suite in storetest. The guarantees, each with a test of the
// same name there:
//
//  1. Each write takes the next number of one sequence that starts at 1 and has no gaps. Watchers that follow it agree
//     on the order of all writes, of every kind.
//  2. Items and Seq of a Snapshot belong to the same instant: following Changes from there sees each later write once
//     and misses none.
//  3. A write that changes nothing takes no number.
//  4. Deleting a tenant or namespace deletes what is inside in the same step, children before parents, each family in
//     key order, so that no reader ever sees a child without its parent.
//  5. A deleted name can be used again at once. The new record has another incarnation, which the caller drew.
//  6. The store draws nothing and reads no clock: every generated value arrives with the call.
package store

import (
	"context"

	"github.com/felixd/felixd/controlplane/model"
)

// Store is the metadata store. All methods may be called from any goroutine; records and slices returned belong to
// the caller. Each method may also return ctx.Err() before it took effect, and, from a store that is not in memory,
// an error matching ErrUnavailable, after which a write may or may not have happened.
type Store interface {
	TenantStore
	NamespaceStore
	StreamStore
	CacheStore
	Feed
}

// TenantStore holds tenants.
type TenantStore interface {
	// CreateTenant stores a new tenant. Errors: ErrInvalid, ErrExists (whatever the existing record holds), ErrFull.
	CreateTenant(ctx context.Context, t model.Tenant) error
	// Tenant returns one tenant, or ErrNotFound.
	Tenant(ctx context.Context, tenant string) (model.Tenant, error)
	// Tenants returns up to limit tenants with an id above after, by id. Limit must be positive.
	Tenants(ctx context.Context, after string, limit int) ([]model.Tenant, error)
	// DeleteTenant removes the tenant and everything inside it in one step, or returns ErrNotFound.
	DeleteTenant(ctx context.Context, tenant string) error
}

// NamespaceStore holds namespaces.
type NamespaceStore interface {
	// CreateNamespace stores a new namespace. Errors: ErrInvalid, ErrNotFound (the tenant), ErrExists, ErrFull.
	CreateNamespace(ctx context.Context, n model.Namespace) error
	// Namespace returns one namespace, or ErrNotFound.
	Namespace(ctx context.Context, tenant, namespace string) (model.Namespace, error)
	// Namespaces returns up to limit namespaces of the tenant with a name above after, by name. Limit must be positive.
	// ErrNotFound when the tenant does not exist.
	Namespaces(ctx context.Context, tenant, after string, limit int) ([]model.Namespace, error)
	// DeleteNamespace removes the namespace and everything inside it in one step, or returns ErrNotFound.
	DeleteNamespace(ctx context.Context, tenant, namespace string) error
}

// StreamStore holds streams.
type StreamStore interface {
	// CreateStream stores s, with modulo where s names no routing, and returns the stored record. Where a stream of that
	// name exists with the same configuration (model.Stream.Differences), nothing changes and the existing record comes
	// back with Unchanged; its incarnation is then not the one asked for. Errors: ErrInvalid, ErrNotFound (the
	// namespace), ErrExists (another configuration, see ExistsError.Differs), ErrUnsupported (durable, where this
	// deployment has no storage), ErrFull.
	CreateStream(ctx context.Context, s model.Stream) (model.Stream, Outcome, error)
	// Stream returns one stream, or ErrNotFound.
	Stream(ctx context.Context, name model.ResourceName) (model.Stream, error)
	// Streams returns up to limit streams of the namespace with a name above after, by name. Limit must be positive.
	// ErrNotFound when the namespace does not exist.
	Streams(ctx context.Context, tenant, namespace, after string, limit int) ([]model.Stream, error)
	// PatchStream applies p in one step and returns the new record. Errors: ErrInvalid, also for a change of durable, ErrNotFound,
	// ErrUnsupported.
	PatchStream(ctx context.Context, name model.ResourceName, p model.StreamPatch) (model.Stream, error)
	// SetLogs records which log each of some shards of a stream has, as the broker that made or opened it reports, and
	// returns the new record. Reporting the same again changes nothing. Errors: ErrNotFound; ErrConflict when the name
	// belongs to another incarnation, the stream is not durable, or a shard has another log already; ErrInvalid for a shard
	// that there is not, or a zero id.
	SetLogs(ctx context.Context, name model.ResourceName, incarnation model.Incarnation, logs []model.ShardLog) (model.Stream, error)
	// DeleteStream removes one stream, or returns ErrNotFound.
	DeleteStream(ctx context.Context, name model.ResourceName) error
}

// CacheStore holds caches. The methods mirror those of StreamStore.
type CacheStore interface {
	CreateCache(ctx context.Context, c model.Cache) (model.Cache, Outcome, error)
	Cache(ctx context.Context, name model.ResourceName) (model.Cache, error)
	Caches(ctx context.Context, tenant, namespace, after string, limit int) ([]model.Cache, error)
	PatchCache(ctx context.Context, name model.ResourceName, p model.CachePatch) (model.Cache, error)
	// SetCacheLogs is SetLogs for a cache: ErrConflict too when the cache is in memory.
	SetCacheLogs(ctx context.Context, name model.ResourceName, incarnation model.Incarnation, logs []model.ShardLog) (model.Cache, error)
	DeleteCache(ctx context.Context, name model.ResourceName) error
}

// Outcome says what a conditional create did.
type Outcome int

// The outcomes of a create that returned no error.
const (
	Created   Outcome = iota + 1 // the record is new
	Unchanged                    // a record with the same configuration was there; nothing was written
)

// String is the word the API uses.
func (o Outcome) String() string {
	if o == Created {
		return "created"
	}
	return "unchanged"
}
