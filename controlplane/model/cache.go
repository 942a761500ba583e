package model

import "slices"

// Cache is the stored definition of a cache. It is comparable; two equal values are the same cache.
type Cache struct {
	TenantID          string      `json:"tenant_id"` // key, with Namespace and Cache
	Namespace         string      `json:"namespace"`
	Cache             string      `json:"cache"`
	Incarnation       Incarnation `json:"incarnation"`            // never zero in a store; immutable
	DisplayName       string      `json:"display_name,omitempty"` // optional; the only mutable field
	Shards            uint32      `json:"shards"`                 // 1..ShardsMax; immutable
	ReplicationFactor uint32      `json:"replication_factor"`     // 1..ReplicationFactorMax; immutable
	Consistency       Consistency `json:"consistency"`            // immutable
	// InMemory keeps the entries in memory alone, on every broker: a restart empties the cache, it evicts instead of refusing, and it
	// has no watches and no counters. Immutable; encoded only when set. A cache that does not ask for it is kept in a log wherever its
	// broker has storage.
	InMemory bool `json:"in_memory,omitempty"`
	// Logs is to a cache what Stream.Logs is to a stream: the identity of each shard's log of entries. Read it with Log.
	Logs string `json:"-"`
}

// RecordKind is KindCaches.
func (Cache) RecordKind() Kind { return KindCaches }

// Key is the cache's full name.
func (c Cache) Key() ResourceName { return ResourceName{c.TenantID, c.Namespace, c.Cache} }

func (Cache) record() {}

// Validate returns a *NameError or *FieldError for the first rule a stored record breaks, else nil.
func (c Cache) Validate() error {
	if err := checkShape(c.Key(), "cache", c.Incarnation, c.Shards, c.ReplicationFactor); err != nil {
		return err
	}
	if err := checkDisplayName(c.DisplayName); err != nil {
		return err
	}
	if err := checkEnum("consistency", c.Consistency, ConsistencyLeader, ConsistencyQuorum); err != nil {
		return err
	}
	return checkLogs(c.logs())
}

// Differences lists the JSON names of the fields in which the configuration asked differs from the stored c, in the
// order of the record. Incarnations and logs are not configuration.
func (c Cache) Differences(asked Cache) []string {
	var d []string
	note := func(differs bool, field string) {
		if differs {
			d = append(d, field)
		}
	}
	note(c.DisplayName != asked.DisplayName, "display_name")
	note(c.Shards != asked.Shards, "shards")
	note(c.ReplicationFactor != asked.ReplicationFactor, "replication_factor")
	note(c.Consistency != asked.Consistency, "consistency")
	note(c.InMemory != asked.InMemory, "in_memory")
	return slices.Clip(d)
}

// CacheSpec is the body that creates a cache. Absent and null fields take the defaults of Record. TenantID and
// Namespace may be left out; where given they must repeat the path.
type CacheSpec struct {
	TenantID          string       `json:"tenant_id,omitempty"`
	Namespace         string       `json:"namespace,omitempty"`
	Cache             string       `json:"cache"`
	DisplayName       string       `json:"display_name,omitempty"`
	Shards            *uint32      `json:"shards,omitempty"`
	ReplicationFactor *uint32      `json:"replication_factor,omitempty"`
	Consistency       *Consistency `json:"consistency,omitempty"`
	InMemory          *bool        `json:"in_memory,omitempty"`
}

// Record returns the cache asked for within tenant and namespace, or what is wrong with the request as a *NameError or
// *FieldError. Defaults: one shard, one copy, consistency Leader, kept
// in a log where its broker has storage.
func (s CacheSpec) Record(tenant, namespace string, i Incarnation) (Cache, error) {
	if err := repeats("tenant_id", s.TenantID, tenant); err != nil {
		return Cache{}, err
	}
	if err := repeats("namespace", s.Namespace, namespace); err != nil {
		return Cache{}, err
	}
	c := Cache{
		TenantID:          tenant,
		Namespace:         namespace,
		Cache:             s.Cache,
		Incarnation:       i,
		DisplayName:       s.DisplayName,
		Shards:            orDefault(s.Shards, 1),
		ReplicationFactor: orDefault(s.ReplicationFactor, 1),
		Consistency:       orDefault(s.Consistency, ConsistencyLeader),
		InMemory:          orDefault(s.InMemory, false),
	}
	return c, c.Validate()
}

// CachePatch changes the mutable fields of a cache. A field that is absent or null keeps its value.
type CachePatch struct {
	DisplayName *string `json:"display_name,omitempty"`
}

// Apply returns c with the patch applied and validated; c itself does not change.
func (p CachePatch) Apply(c Cache) (Cache, error) {
	c.DisplayName = orDefault(p.DisplayName, c.DisplayName)
	if err := c.Validate(); err != nil {
		return Cache{}, err
	}
	return c, nil
}

// Validate returns the *FieldError that Apply would return for any cache.
func (p CachePatch) Validate() error { return checkDisplayName(orDefault(p.DisplayName, "")) }
