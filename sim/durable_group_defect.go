package main

import (
	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/wire/id"
)

// spoilGroups is given to the node as WrapShard: its groups are what they would be like if the product had made a mistake.
func (n *dnode) spoilGroups(name route.Name, _ uint32, a actors.Actor) actors.Actor {
	if name != n.run.resources[ordersStream].Name {
		return a
	}
	return actors.Around(a, func(t *actors.Turn) {
		if t.Lifecycle() != actors.None {
			return
		}
		for _, m := range t.Messages() {
			if m, ok := m.(*shardactor.GroupRequest); ok {
				n.spoilRequest(actors.RefOf[shardactor.Message](t), m)
			}
		}
	}, nil)
}

func (n *dnode) spoilRequest(shard shardactor.Ref, m *shardactor.GroupRequest) {
	if n.added[m] {
		return
	}
	defect := n.run.plan.Defect
	if in, ok := m.In.(*groupcore.Poll); ok && defect == ClaimsEndEarly {
		in.Visibility = n.run.plan.Group.visible(in.Visibility) / 4
	}
	if in, ok := m.In.(groupcore.Nack); ok && defect == AnyNackCounts {
		in.Attempts = 0
		m.In = in
	}
	if in, ok := m.In.(groupcore.Redrive); ok && defect == RedriveForgets {
		m.In = groupcore.Discard{Offset: in.Offset}
	}
	if in, ok := m.In.(*groupcore.Ack); ok && defect == SettlesTheNextToo {
		also := &shardactor.GroupRequest{Group: m.Group, In: &groupcore.Ack{Offset: in.Offset + 1}}
		also.To(noWorker{}, 0)
		if n.added == nil {
			n.added = map[*shardactor.GroupRequest]bool{}
		}
		n.added[also] = true
		if err := shard.TrySend(also, shardactor.Size(also)); err != nil {
			n.run.world.Note("%v", err)
		}
	}
}

// noWorker hears no answers.
type noWorker struct{}

var _ shardactor.GroupReply = noWorker{}

// AnswerGroup implements shardactor.GroupReply.
func (noWorker) AnswerGroup(shardcore.Token, *groupcore.Answer) {}

// Fetch implements shardactor.GroupReply.
func (noWorker) Fetch(_ shardcore.Token, _ []id.Offset, done func(shardactor.GroupRead)) {
	done(shardactor.GroupRead{})
}

// Drop implements shardactor.GroupReply.
func (noWorker) Drop(shardcore.Token) {}

// Deliver implements shardactor.GroupReply.
func (noWorker) Deliver(shardcore.Token, []groupcore.Handed) {}

// Flush implements shardactor.GroupReply.
func (noWorker) Flush() {}
