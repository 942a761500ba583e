package shardactor

import (
	"slices"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// correctLost brings up the groups whose notes reach beyond the end that the log had when it was opened, as soon as the notes can be read:
// they write anew what they know. See groupcore.Lost.
func (g *groups) correctLost(t *actors.Turn, shard Ref) {
	end, wanted := g.lost.Wanted()
	if !wanted || g.stopped != nil {
		return
	}
	for _, name := range g.lost.Found(g.disk.groups.beyond(end), g.settings.PerShard) { // none runs yet
		_, _ = g.spawn(t, shard, name, false) // whoever asks for it is told why it can't be used
	}
}

// correctedReply takes the outcome of a batch of cursors of a group, which may be one that had notes beyond the end of the log.
type correctedReply struct {
	Reply
	groups *groups
	group  string
}

// Answer implements Reply.
func (r correctedReply) Answer(t shardcore.Token, a Answer) {
	if a.Refusal == nil {
		r.groups.lost.Durable(r.group)
	}
	r.Reply.Answer(t, a)
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
