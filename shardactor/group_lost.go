package shardactor

import (
	"slices"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/durable"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// lostTail is what the groups of a shard remember of a log that had lost its end when it was opened: where streams are not synced before they
// are acknowledged, a power cut may take records that a group has finished, and leave its note of that. What comes at their offsets from now
// on is new, and no group may take it for what it has finished.
type lostTail struct {
	known bool // end is
	end   id.Offset
	// groups are those whose notes reach beyond end, and that were not brought up since; never iterated.
	groups map[string]bool
	looked bool
}

// begins notes where the main log ends when it is opened: before anything is appended.
func (l *lostTail) begins(log *durable.Log) {
	if !l.known {
		l.end, l.known = log.Tail(), true
	}
}

// takes reports whether a group has notes beyond the end; it is to be brought up with that end, once.
func (l *lostTail) takes(group string) bool {
	lost := l.groups[group]
	delete(l.groups, group)
	return lost
}

// correctLost brings up the groups whose notes reach beyond the end of the log, as soon as the notes can be read: they write anew what they
// know. Those for which there is no room are brought up so when somebody asks them.
func (g *groups) correctLost(t *actors.Turn, shard Ref) {
	logs := g.disk.groups
	if g.lost.looked || !g.lost.known || g.stopped != nil || logs == nil || !logs.open() {
		return
	}
	g.lost.looked = true
	names := logs.beyond(g.lost.end)
	if len(names) == 0 {
		return
	}
	g.lost.groups = make(map[string]bool, len(names))
	for _, name := range names {
		g.lost.groups[name] = true
	}
	for _, name := range names {
		if g.byName[name] == nil && len(g.list) < g.settings.PerShard {
			_, _ = g.spawn(t, shard, name) // whoever asks for it is told why it can't be used
		}
	}
}

// beyond lists the groups whose notes reach beyond an offset, in the order of their names.
func (g *groupLogs) beyond(end id.Offset) []string {
	seen := make(map[string]bool)
	var names []string
	for _, l := range g.logs() {
		for c := (keyed.Cursor)(0); ; {
			c = l.table.Index().Scan(c, nil, func(e keyed.Entry) {
				group, x, err := groupcore.DecodeEntry(e.Key, e.Value)
				if err == nil && x.Reach() > end && !seen[string(group)] { // what can't be read is its group's trouble
					seen[string(group)] = true
					names = append(names, string(group))
				}
			})
			if c.Done() {
				break
			}
		}
	}
	slices.Sort(names)
	return names
}
