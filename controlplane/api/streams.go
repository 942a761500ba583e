package api

import (
	"context"

	"github.com/felixd/felixd/controlplane/auth"
	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

func streamFamily() family {
	return family{kind: model.ResourceStream, key: "stream", manage: auth.StreamManage, object: auth.StreamObject}
}

// streamImmutable are the fields of a stream that a patch can't change.
func streamImmutable() []string {
	return []string{"tenant_id", "namespace", "stream", "incarnation", "kind", "shards", "replication_factor", "region", "routing"}
}

// listStreams serves GET .../streams.
func (a *api) listStreams(c *call) (reply, error) {
	return a.shown(listFamily(c, streamFamily(), a.Store.Streams))
}

// createStream serves POST .../streams: 201 when new, 200 with the existing record when it has the same configuration.
func (a *api) createStream(c *call) (reply, error) {
	return a.shown(createFamily(c, streamFamily(), model.StreamSpec.Record,
		func(ctx context.Context, s model.Stream) (model.Stream, store.Outcome, error) {
			if err := a.capabilities.Check(s); err != nil {
				return model.Stream{}, 0, err
			}
			return a.Store.CreateStream(ctx, s)
		}))
}

// getStream serves GET .../streams/{stream}.
func (a *api) getStream(c *call) (reply, error) {
	return a.shown(getFamily(c, streamFamily(), a.Store.Stream))
}

// patchStream serves PATCH .../streams/{stream}.
func (a *api) patchStream(c *call) (reply, error) {
	return a.shown(patchFamily(c, streamFamily(), streamImmutable(), a.Store.PatchStream))
}

// deleteStream serves DELETE .../streams/{stream}.
func (a *api) deleteStream(c *call) (reply, error) {
	return deleteFamily(c, streamFamily(), a.Store.DeleteStream)
}
