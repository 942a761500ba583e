package shardactor

import (
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/durable"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// GroupSettings are what the groups of a node have in common.
type GroupSettings struct {
	// Options are a group's, but for its name.
	Options groupcore.Options
	// PerShard bounds the groups of one shard that are in memory at a time, and Door the requests that wait for them to be brought up: for the
	// shard's logs of groups to be opened, or for a group that was let go of to be over. Its MaxWait is that of Options.
	PerShard int
	Door     groupcore.DoorOptions
	// Claims bounds the memory of the records that all groups of the node have in flight, Kept that of what they keep besides, in memory or at
	// rest; the zero value of Kept is the default.
	Claims groupcore.ClaimLimits
	Kept   groupcore.ClaimLimits
}

// DefaultGroupSettings are the documented defaults: 4096 groups of a shard are 26 MiB while nobody polls them.
func DefaultGroupSettings() GroupSettings {
	return GroupSettings{
		Options: groupcore.DefaultOptions(""), PerShard: 4096, Door: groupcore.DefaultDoorOptions(),
		Claims: groupcore.DefaultClaims(), Kept: groupcore.DefaultKept(),
	}
}

// groups are the consumer groups of one shard that are in memory, in the shard's turns.
//
//  1. byName holds the groups that run, and names those of byActor;
//  2. writes counts, for each name, the batches on their way to the logs: a group begins only when there are none, since its state is
//     what is folded.
type groups struct {
	disk     *disk
	settings *GroupSettings
	metrics  *GroupMetrics
	ends     logEnds
	byName   map[string]*groupChild
	byActor  map[string]string
	list     []*groupChild // the same, in the order they came
	writes   map[string]int
	leaving  map[string]*groupChild // that are over, and had something sent that the shard did not take yet
	door     *groupcore.Door        // where requests wait, and which groups are let go of
	next     uint64
	stopped  *wire.Refusal // the shard ends
}

// groupChild is a group that runs.
type groupChild struct {
	name   string
	ref    actors.Ref[groupMessage]
	hungry atomic.Bool
	inbox  groupInbox
	sent   atomic.Uint64 // batches for which the mailbox of the shard had room
	taken  uint64        // of those, how many the shard has come to
}

func newGroups(d *disk, s *GroupSettings, m *GroupMetrics) *groups {
	door := s.Door
	door.MaxWait = s.Options.MaxWait
	return &groups{disk: d, settings: s, metrics: m, door: groupcore.NewDoor(door)}
}

// Claimed implements shardcore.Book.
func (g *groups) Claimed(log shardcore.Log, b *batch.Batch) {
	if log != shardcore.LogMain {
		g.disk.groups.claimed(log, b)
	}
}

// Void implements shardcore.Book.
func (g *groups) Void(log shardcore.Log, from id.Offset) {
	if log != shardcore.LogMain {
		g.disk.groups.voided(log, from)
	}
}

// groupRequest passes a request on to its group.
func (s *Shard) groupRequest(t *actors.Turn, m *GroupRequest) {
	g := s.groups
	switch {
	case g == nil:
		m.refuse(wire.Refuse(wire.CodeInvalidRequest, "the stream is ephemeral and has no groups: they take a durable stream").WithReason("ephemeral", 0))
	case g.stopped != nil:
		m.refuse(*g.stopped)
	case !s.core.Serving():
		m.refuse(*notServing())
	case len(m.Group) == 0 || len(m.Group) > groupcore.MaxGroupBytes:
		m.refuse(wire.Refuse(wire.CodeInvalidRequest, "a group needs a name of 1 to "+strconv.Itoa(groupcore.MaxGroupBytes)+" bytes"))
	default:
		switch a := g.door.Visit(s.at(t).Mono, m.visit()); {
		case a.In:
			g.pass(t, s.self, m)
		case a.Refusal != nil:
			m.refuse(*a.Refusal)
		case a.Open:
			g.disk.openGroups(s.opts.generation)
		}
	}
}

// groupPause is how long a request that found no room is told to wait, in milliseconds.
const groupPause = 50

func notServing() *wire.Refusal {
	return unavailableGroup("the shard does not serve right now; repeat the request")
}

func unavailableGroup(message string) *wire.Refusal {
	f := wire.Refuse(wire.CodeShardUnavailable, message)
	f.Reason = wire.ReasonNotReady
	return &f
}

// pass gives a request to its group, which is brought up if it does not run.
func (g *groups) pass(t *actors.Turn, shard Ref, m *GroupRequest) {
	c := g.byName[m.Group]
	if c == nil {
		var f *wire.Refusal
		if c, f = g.spawn(t, shard, m.Group, makesGroup(m.In)); f != nil {
			m.refuse(*f)
			return
		}
		if c == nil {
			g.answerAbsent(m)
			return
		}
	}
	m.passed = true // before it is: the group may answer at once
	if err := c.ref.TrySend(groupAsked{m}, m.size()); err != nil {
		m.passed = false
		if c.ref.Alive() {
			m.refuse(wire.Refuse(wire.CodeOverloaded, "the group's queue is full; repeat the request after a pause").WithReason(wire.ReasonPublishQueueFull, groupPause))
			return
		}
		m.refuse(*unavailableGroup("the group is being replaced; repeat the request"))
		return
	}
	g.door.Given(m.Group)
}

// spawn brings a group up from what its logs say. It returns neither if they say nothing, there is no room for one more, and the request makes none.
func (g *groups) spawn(t *actors.Turn, shard Ref, name string, makes bool) (*groupChild, *wire.Refusal) {
	switch {
	case g.writes[name] > 0 || g.leaving[name] != nil:
		return nil, unavailableGroup("the group is being brought up again; repeat the request")
	case g.door.Staying() >= g.settings.PerShard:
		f := wire.Refuse(wire.CodeLimitExceeded, "too many groups of one shard are in use; "+strconv.Itoa(g.settings.PerShard)+" are the most")
		return nil, &f
	}
	state, err := g.disk.groups.state(name, g.disk.lost.list)
	if err != nil {
		f := wire.Refuse(wire.CodeStorage, "what is stored of the group can't be used: "+vfs.WithoutFolders(err))
		return nil, &f
	}
	if !g.disk.lost.failed {
		state.Before(g.disk.lost.end)
	}
	if makes && state.Empty() {
		if f := g.admit(name); f != nil {
			return nil, f
		}
	}
	c := &groupChild{name: name}
	kept := &g.disk.groups.kept
	beyond, backed, ok := kept.up(name, &c.inbox)
	if !ok {
		if !makes {
			return nil, nil
		}
		f := wire.Refuse(wire.CodeLimitExceeded, "no memory for one more group: the groups of the broker keep as much as they may; remove those that nobody uses, or discard dead letters")
		return nil, &f
	}
	if end := g.ends.committed.Load(); end > 0 {
		g.ends.ages.note(id.Offset(end), t.Now())
	}
	o := groupOptions{core: g.settings.Options, loaded: state, ends: &g.ends, hungry: &c.hungry, inbox: &c.inbox, child: c, shard: shard, metrics: g.metrics}
	o.core.Group, o.core.Rationed, o.core.Counted = name, true, true
	o.claims, o.tenant = g.disk.disks.claims, g.disk.spec.Tenant
	o.kept, o.keeper, o.beyond, o.backed = g.disk.disks.kept, kept.holder(name), beyond, backed
	g.next++
	actor := "group/" + strconv.FormatUint(g.next, 10)
	ref, err := actors.Spawn[groupMessage](t, actors.Spec[groupMessage]{
		Name: actor, Kind: "group", Bounds: groupBounds,
		New:          func() actors.Actor { return &Group{opts: o} },
		OnUnstepped:  func(m groupMessage) { endAsked(m, "the group stopped before the request was looked at; repeat it") },
		OnUnanswered: unansweredGroup,
	})
	if errors.Is(err, actors.ErrStopped) {
		kept.down(name)
		return nil, unavailableGroup("the shard is being stopped; repeat the request")
	}
	if err != nil {
		panic("shardactor: spawn group: " + err.Error())
	}
	c.ref = ref
	if g.byName == nil {
		g.byName, g.byActor = make(map[string]*groupChild), make(map[string]string)
	}
	g.byName[name], g.byActor[actor] = c, name
	g.door.Up(name)
	g.list = append(g.list, c)
	return c, nil
}

// answerAbsent answers a request about a group that is not there as that would, if there is no room to bring it up: whoever has to remove groups or
// dead letters asks every shard of a stream.
func (g *groups) answerAbsent(m *GroupRequest) {
	o := g.settings.Options
	o.Group = m.Group
	tail := groupcore.Tail{End: id.Offset(g.ends.end.Load()), Committed: id.Offset(g.ends.committed.Load())}
	core := groupcore.New(o, 0, groupcore.Loaded{Base: id.Offset(g.ends.base.Load()), Tail: tail})
	core.Step(0, withAsk(m.In, groupcore.Ask{Reply: m, Token: uint64(m.token)}))
	for _, e := range core.Take() {
		if list, ok := e.(*groupcore.Answers); ok {
			m.settle()
			m.reply.AnswerGroup(m.token, &list.List[0])
			m.reply.Flush()
		}
	}
}

// admit refuses to make a group for whose position the index of its log has no place.
func (g *groups) admit(name string) *wire.Refusal {
	key := groupcore.AppendKey(nil, name, groupcore.KindPosition, 0)
	if err := g.disk.groups.tables[0].Index().Admit(key, positionBytes, false); err != nil {
		f := wire.Refuse(wire.CodeLimitExceeded, "no memory for one more group, remove those that nobody uses: "+full(err))
		return &f
	}
	return nil
}

// makesGroup reports whether a request makes its group if there is none.
func makesGroup(in groupcore.Input) bool {
	_, poll := in.(*groupcore.Poll)
	_, seek := in.(groupcore.Seek)
	return poll || seek
}

// positionBytes is about what the position of a group takes as a value.
const positionBytes = 32

// endAsked refuses a request of which nothing happened.
func endAsked(m groupMessage, message string) {
	if a, ok := m.(groupAsked); ok {
		a.refuse(*unavailableGroup(message))
	}
}

// unansweredGroup answers a request that a group which is over had looked at. A poll that waited, or whose records nobody will get, can be
// repeated; what became of another is not known.
func unansweredGroup(m groupMessage) {
	a, ok := m.(groupAsked)
	if !ok {
		return
	}
	if _, poll := a.In.(*groupcore.Poll); poll {
		endAsked(m, "the group ended while the poll waited; repeat it")
		return
	}
	a.refuse(wire.Refuse(wire.CodeUnacknowledged, "the group failed before it answered; the request may or may not have been done"))
}

// ended forgets a group that is over, and returns the requests that waited for that.
func (g *groups) ended(now time.Duration, x actors.Terminated) (name string, later []groupcore.Visit, known bool) {
	name, known = g.byActor[x.Name]
	if !known {
		return "", nil, false
	}
	delete(g.byActor, x.Name)
	c := g.byName[name]
	delete(g.byName, name)
	g.disk.groups.kept.down(name)
	g.list = slices.DeleteFunc(g.list, func(o *groupChild) bool { return o == c })
	if c.sent.Load() > c.taken { // the shard hears of the end before it comes to what was sent before
		if g.leaving == nil {
			g.leaving = make(map[string]*groupChild)
		}
		g.leaving[name] = c
	}
	return name, g.door.Over(now, name), true
}

// idle lets go of a group that is at rest, unless it was asked something since it said so.
func (g *groups) idle(m *groupIdle) {
	if g.door.Rests(m.group, m.stepped) {
		g.byName[m.group].ref.Stop()
	}
}

// gone tells a group that a connection is closed. Its requests that wait for the group are answered here.
func (g *groups) gone(m *GroupGone) {
	for _, v := range g.door.Gone(m.Group, m.Conn) {
		v.Request.(*GroupRequest).endPoll()
	}
	if c := g.byName[m.Group]; c != nil {
		c.inbox.add(groupNews{in: groupcore.Gone{Conn: m.Conn}, after: g.door.GivenTo(m.Group)})
	}
}

// write is a batch of a group, on its way to a log.
func (g *groups) write(m *groupWrite) shardcore.Input {
	if g.writes == nil {
		g.writes = make(map[string]int)
	}
	g.writes[m.group]++
	if m.from.taken++; g.leaving[m.group] == m.from && m.from.taken == m.from.sent.Load() {
		delete(g.leaving, m.group)
	}
	m.result, m.done = nil, func() { g.written(m.group) }
	m.write = shardcore.Write{Reply: &m.request, Log: m.log, Batch: &m.batch, Fold: true}
	return &m.write
}

// written notes the outcome of a batch.
func (g *groups) written(group string) {
	if g.writes[group]--; g.writes[group] <= 0 {
		delete(g.writes, group)
	}
}

// advance tells the groups whose polls wait that the log has gone on.
func (g *groups) advance() {
	for _, c := range g.list {
		if c.hungry.Swap(false) {
			c.inbox.add(groupNews{})
		}
	}
}

// stop ends all groups, with the shard: polls that wait are answered, and what comes from now on is refused.
func (g *groups) stop(f wire.Refusal) {
	if g.stopped != nil {
		return
	}
	g.stopped = &f
	refuseVisits(g.door.Close(), f)
	for _, c := range g.list {
		c.inbox.tell(groupcore.Stop{Refusal: &f})
	}
}

// groupEnded forgets a group, and says so if it failed.
func (s *Shard) groupEnded(t *actors.Turn, x actors.Terminated) {
	if s.groups == nil {
		return
	}
	name, later, known := s.groups.ended(s.at(t).Mono, x)
	for _, v := range later {
		s.letIn(t, v)
	}
	if known && x.Reason == actors.Panicked {
		s.groups.metrics.Failed.Inc()
		s.groups.disk.lost.failed = true
		s.opts.events.Emit(groupFailed{shard: s.opts.number, name: s.opts.name, group: name, panic: panicText(x.Panic)})
	}
}

func (s *Shard) stopGroups() {
	if s.groups != nil {
		s.groups.stop(wire.Refuse(wire.CodeDraining, "the broker is shutting down; connect again or use another one"))
	}
}

// trimmed shows groups where the log begins.
func (g *groups) trimmed(log *durable.Log) {
	if log != nil {
		oldest, _ := log.Bounds()
		g.ends.base.Store(uint64(oldest))
	}
}

// advanceGroups shows groups the log up to end.
func (s *Shard) advanceGroups(end id.Offset, now time.Time) {
	g := s.groups
	if g == nil {
		return
	}
	g.trimmed(s.log.(*disk).log)
	g.ends.end.Store(uint64(s.core.Tail(shardcore.LogMain)))
	g.ends.committed.Store(uint64(end))
	if len(g.list) > 0 || g.disk.groups != nil {
		g.ends.ages.note(end, now)
	}
	g.advance()
}
