package shardactor

import (
	"slices"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire"
)

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
		m.Done(s.groups.disk.groups.names(m.Max), nil)
	}
}

// names are the first most names of groups that have a position.
func (g *groupLogs) names(most int) []string {
	var names []string
	for c := (keyed.Cursor)(0); ; {
		c = g.cursors.table.Index().Scan(c, nil, func(e keyed.Entry) {
			if group, x, err := groupcore.DecodeEntry(e.Key, e.Value); err == nil && x.Kind == groupcore.KindPosition && !x.Deleted {
				names = append(names, string(group))
			}
		})
		if c.Done() {
			break
		}
	}
	slices.Sort(names)
	return names[:min(len(names), most)]
}
