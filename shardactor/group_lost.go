package shardactor

import (
	"fmt"
	"slices"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// lostEnds is what a stream's shard knows of the ends that its log has lost, see groupcore.Lost. The logs of its groups are read before the core
// is told what the log holds, if they can be; what has to be kept is durable before the shard serves. Where they cannot, the shard goes on
// without them, and no group is brought up before they were read and that is kept too.
type lostEnds struct {
	found   *openedLog // the log is open, and the core was not told yet
	end     id.Offset  // where it ended then
	list    groupcore.Lost
	kept    bool // the groups' logs were read, and what that says is durable before any group is brought up
	keeping bool
	failed  bool // a group did since, and what it had handed out may be written nowhere
}

// goOn tells the core of the log, and of those of the groups, when that may be.
func (d *disk) goOn(core *shardcore.Core, at shardcore.At, n *told) {
	l, g := &d.lost, d.groups
	if n.lostKept {
		if l.keeping, l.kept = false, n.lostErr == nil; !l.kept {
			g.openFailed(&g.cursors, fmt.Errorf("keep the end of the stream's log: %w", n.lostErr))
		}
	}
	if l.found != nil {
		if g != nil && !g.tried() {
			return
		}
		if l.kept = g != nil && g.open(); l.kept {
			l.list = g.lost(l.list, l.end)
		} else if g != nil {
			l.list = l.list.Unread(l.end)
		}
		o := l.found
		l.found = nil
		// Its Save takes the list along.
		core.Step(at, shardcore.Recovered{Tails: shardcore.MainTail(o.tail), Base: o.base, Producers: o.producers})
	}
	if g != nil {
		if g.open() && n.lostErr == nil {
			d.keepLost()
		}
		g.tell(core, at)
	}
}

// keepLost makes durable what is to be kept since the groups' logs are read.
func (d *disk) keepLost() {
	l := &d.lost
	if l.kept || l.keeping || l.found != nil {
		return
	}
	l.list = d.groups.lost(l.list, l.end)
	ends := lostToKeep(l.list)
	if slices.Equal(ends, d.file.Lost()) {
		l.kept = true
		return
	}
	l.keeping = true
	d.file.KeepLost(ends, func(err error) {
		d.news.tell(func(t *told) { t.lostKept, t.lostErr = true, err })
	})
}

// openGroups opens the logs of the groups, or what of that is not done.
func (d *disk) openGroups(generation id.Generation) {
	g := d.needGroups()
	g.start(generation)
	if g.open() {
		d.keepLost()
	}
}

// lost is what has to be kept now that the groups' logs are read, where the stream's ended at end.
func (g *groupLogs) lost(list groupcore.Lost, end id.Offset) groupcore.Lost {
	tails := [...]id.Offset{g.cursors.given, g.dead.given}
	return list.Read(end, tails, func(note func(groupcore.Log, id.Offset, id.Offset)) {
		for i, t := range g.tables {
			if t.reach > end {
				t.notes(func(e *keyed.Entry, x *groupcore.Entry) { note(groupcore.Log(i), e.Version, x.Reach()) })
			}
		}
	})
}

// tell tells the core which of the logs were opened.
func (g *groupLogs) tell(core *shardcore.Core, at shardcore.At) {
	for _, l := range g.logs() {
		if l.opened && !l.told {
			l.told = true
			core.Step(at, shardcore.LogOpened{Log: l.which, Tail: l.given})
		}
	}
}

// tried reports whether both logs were opened, or could not be.
func (g *groupLogs) tried() bool {
	return (g.cursors.opened || g.cursors.tried) && (g.dead.opened || g.dead.tried)
}

// All that has to be kept fits into the file.
const _ = uint(segment.MaxLostEnds - groupcore.MaxLostEnds)

func lostToKeep(l groupcore.Lost) (list []segment.LostEnd) {
	for _, x := range l {
		list = append(list, segment.LostEnd{End: x.End, Cursors: x.Before[groupcore.LogCursors], DeadLetters: x.Before[groupcore.LogDeadLetters]})
	}
	return list
}

func lostThatIsKept(list []segment.LostEnd) (l groupcore.Lost) {
	for _, x := range list {
		e := groupcore.LostEnd{End: x.End}
		e.Before[groupcore.LogCursors], e.Before[groupcore.LogDeadLetters] = x.Cursors, x.DeadLetters
		l = append(l, e)
	}
	return l
}
