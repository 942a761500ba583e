package api

import (
	"github.com/felixd/felixd/controlplane/auth"
	"github.com/felixd/felixd/controlplane/model"
)

func cacheFamily() family {
	return family{kind: model.ResourceCache, key: "cache", manage: auth.CacheManage, object: auth.CacheObject}
}

// cacheImmutable are the fields of a cache that a patch can't change.
func cacheImmutable() []string {
	return []string{"tenant_id", "namespace", "cache", "incarnation", "shards", "replication_factor", "consistency", "in_memory"}
}

// listCaches serves GET .../caches.
func (a *api) listCaches(c *call) (reply, error) {
	return listFamily(c, cacheFamily(), a.Store.Caches)
}

// createCache serves POST .../caches: 201 when new, 200 with the existing record when it has the same configuration.
func (a *api) createCache(c *call) (reply, error) {
	return createFamily(c, cacheFamily(), model.CacheSpec.Record, a.Store.CreateCache)
}

// getCache serves GET .../caches/{cache}.
func (a *api) getCache(c *call) (reply, error) {
	return getFamily(c, cacheFamily(), a.Store.Cache)
}

// patchCache serves PATCH .../caches/{cache}.
func (a *api) patchCache(c *call) (reply, error) {
	return patchFamily(c, cacheFamily(), cacheImmutable(), a.Store.PatchCache)
}

// deleteCache serves DELETE .../caches/{cache}.
func (a *api) deleteCache(c *call) (reply, error) {
	return deleteFamily(c, cacheFamily(), a.Store.DeleteCache)
}
