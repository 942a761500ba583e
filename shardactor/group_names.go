package shardactor

import "github.com/felixd/felixd/wire"

// GroupNames asks for the names of the groups that the shard has, the first Max of them in their order. Done is called once with them, or
// with why they can't be told; or not at all, if the shard ends first. It must not block.
type GroupNames struct {
	Max  int
	Done func(names []string, f *wire.Refusal)
}

func (*GroupNames) shardMessage() {}

// Settled: whoever asks does not wait for ever.
func (*GroupNames) Settled() bool { return true }

// groupNames answers what the logs of groups say.
func (s *Shard) groupNames(m *GroupNames) {
	switch {
	case !s.core.Serving():
		m.Done(nil, unavailableGroup("the shard does not serve right now; repeat the request"))
	case s.groups == nil || s.groups.disk.groups == nil:
		m.Done(nil, nil) // there are no logs of groups, and so no groups
	case !s.groups.disk.groups.open():
		m.Done(nil, unavailableGroup("the groups' logs are not open; repeat the request"))
	default:
		m.Done(s.groups.disk.groups.tables[0].directory.Names(m.Max), nil) // of cursors
	}
}
