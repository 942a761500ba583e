package api

import "github.com/felixd/felixd/controlplane/model"

// streamView is a stream as answers show it: the record, and what holds for it because of its brokers.
type streamView struct {
	model.Stream
	// FsyncMode is Options.FsyncMode; absent for ephemeral streams, and where it is not known.
	FsyncMode string `json:"fsync_mode,omitempty"`
}

// shown makes views of the streams in an answer.
func (a *api) shown(r reply, err error) (reply, error) {
	switch body := r.body.(type) {
	case model.Stream:
		r.body = a.view(body)
	case Page[model.Stream]:
		page := Page[streamView]{Items: make([]streamView, 0, len(body.Items)), NextCursor: body.NextCursor}
		for _, s := range body.Items {
			page.Items = append(page.Items, a.view(s))
		}
		r.body = page
	}
	return r, err
}

func (a *api) view(s model.Stream) streamView {
	v := streamView{Stream: s}
	if s.Durable {
		v.FsyncMode = a.FsyncMode
	}
	return v
}
