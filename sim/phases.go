package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/shardactor/route"
)

// start brings up the nodes.
func (r *run) start() error {
	for n := range r.plan.Nodes {
		b, err := r.startBroker(n)
		if err != nil {
			return err
		}
		r.brokers = append(r.brokers, b)
	}
	return r.world.Run(stepsMost, r.allServe)
}

// allServe reports whether every shard of every node serves.
func (r *run) allServe() bool {
	for _, b := range r.brokers {
		for _, a := range r.resources {
			e := b.node.Table.Get(a.Name)
			if e == nil {
				return false
			}
			for _, t := range e.Shards() {
				if t.State != route.Local || !t.Shard.Serving() {
					return false
				}
			}
		}
	}
	return true
}

// rage lets clients and chaos go.
func (r *run) rage() error {
	rand := r.world.Rand()
	for range r.plan.Sessions {
		to, tenant := r.brokers[rand.IntN(len(r.brokers))], r.resources[rand.IntN(len(r.resources))].Name.Tenant
		c := r.newClient(to, tenant, 1+rand.IntN(6))
		c.work("script", c.ordinary)
	}
	if r.plan.Flood {
		c := r.newClient(r.brokers[0], r.resources[0].Name.Tenant, 1)
		c.work("flood", c.flood)
	}
	if rand.IntN(3) == 0 {
		c := r.newClient(r.brokers[0], r.resources[0].Name.Tenant, 1)
		c.work("silence", c.silent)
	}
	if rand.IntN(6) == 0 {
		c := r.newClient(r.brokers[0], r.resources[0].Name.Tenant, 1)
		c.work("crowd", c.crowd)
	}
	if r.plan.Strikes {
		r.chaos.strikes()
	}
	end := r.world.Steps() + stepsBusy
	return r.blame(r.world.Run(stepsMost, func() bool { return r.busy == 0 || r.world.Steps() >= end }))
}

// calmDown ends chaos and waits until every client has done what it wanted: all its requests are answered.
func (r *run) calmDown() error {
	r.calm = true
	for _, b := range r.brokers {
		b.plans = faultPlans{}
		b.node.System.Faults().HealAll()
	}
	return r.blame(r.world.Run(stepsMost, func() bool { return r.busy == 0 && r.owed == 0 }))
}

// blame says what clients wait for when nothing can happen any more.
func (r *run) blame(err error) error {
	if errors.Is(err, simrt.ErrIdle) {
		return fmt.Errorf("%d coroutines of clients wait for ever: %s", r.busy, r.waiting())
	}
	return err
}

// waiting lists what clients wait for.
func (r *run) waiting() string {
	var out []string
	for _, c := range r.all {
		for _, t := range c.talks {
			if !t.over && len(t.pending) > 0 {
				out = append(out, fmt.Sprintf("%s: %d unanswered, first %s", t.name, len(t.pending), t.pending[0].what))
			}
		}
	}
	for _, b := range r.brokers {
		out = append(out, b.fullReaders()...)
	}
	return strings.Join(append(out, r.world.Alive()...), "; ")
}

// comeBack waits until the last fault has struck and every shard serves again.
func (r *run) comeBack() error {
	limit := r.world.Now() + liveWithin
	if err := r.world.Run(stepsMost, r.world.Idle); err != nil {
		return err
	}
	quarantined := !r.allServe()
	if err := r.world.Run(stepsMost, func() bool { return r.world.Idle() && r.allServe() || r.world.Now() > limit }); err != nil {
		return err
	}
	if !r.allServe() {
		return fmt.Errorf("some shard does not serve %v after the last fault", liveWithin)
	}
	if quarantined && r.marks[markQuarantine] > 0 {
		r.marks.hit(markReturn)
	}
	return nil
}

// settle waits until nothing moves, and judges what there is.
func (r *run) settle() error {
	quiet := func() bool { return r.asleep == 0 && r.net.wanted == 0 && r.world.Idle() }
	if err := r.world.Run(stepsMost, quiet); err != nil {
		return err
	}
	// Nothing can run, but events may wait for others to join them, on a clock that is slow.
	waited := false
	r.clock.AfterFunc(2*r.plan.Limits.Delivery.MaxDelay, func() { waited = true })
	if err := r.world.Run(stepsMost, func() bool { return waited && quiet() }); err != nil {
		return err
	}
	for _, b := range r.brokers {
		if err := b.settled(); err != nil {
			return err
		}
	}
	for _, c := range r.all {
		for _, s := range c.order {
			if err := s.settle(); err != nil {
				return err
			}
			if path := fmt.Sprintf("%s/sub/%d", c.link.session, s.id); !c.gone() && s.begun && !s.over && slices.Contains(c.to.crashed, path) {
				return fmt.Errorf("%s: subscription %d goes on after %s failed", c.name, s.id, path)
			}
		}
	}
	return r.judge()
}

// judge compares what clients were told with what happened.
func (r *run) judge() error {
	for _, x := range r.publishes {
		for _, id := range x.p.ids {
			_, there := x.to.truth.records[id]
			if x.p.refused && there {
				return fmt.Errorf("record %x was refused and is in the log", id)
			}
		}
	}
	for _, b := range r.brokers {
		metric := b.metrics()
		if lost, there := metric("felix_subscribe_dropped_total"); !there || lost != float64(b.dropped) || b.truth.lost > int(b.dropped) {
			return fmt.Errorf("%s: subscribers missed %d records, %d were told as lost, and %v were counted", b.name, b.truth.lost, b.dropped, lost)
		}
		dropped, _ := metric("felix_tenant_publish_queue_full_total", "dropped") // not there while there was none
		r.marks[markDropUnacked] += int(dropped)
	}
	return nil
}

// settled checks that an idle node holds nothing.
func (b *broker) settled() error {
	return b.zero("on an idle node", "felix_publish_inflight_bytes", "felix_publish_queue_slots", "felix_frame_bytes", "felix_partial_frame_bytes",
		"felixd_actor_mailbox_items", "felixd_actor_mailbox_bytes", "felix_shards_quarantined", "felix_sub_lagging", "felix_sub_reader_bytes")
}

// zero checks that metrics are 0.
func (b *broker) zero(when string, names ...string) error {
	metric := b.metrics()
	for _, name := range names {
		if v, there := metric(name); v != 0 || !there {
			return fmt.Errorf("%s: %s is %v %s (the node has such a metric: %v)", b.name, name, v, when, there)
		}
	}
	return nil
}

// leave ends the clients, or drains the nodes under them.
func (r *run) leave() error {
	if r.plan.Drain {
		return r.drain()
	}
	for _, c := range r.all {
		c.link.client.lose("the client leaves")
	}
	return r.world.Run(stepsMost, func() bool { return r.world.Idle() && r.noSessions() })
}

func (r *run) noSessions() bool {
	for _, b := range r.brokers {
		if len(b.sessions) > 0 {
			return false
		}
	}
	return true
}

// drain drains every node, sessions first, then shards.
func (r *run) drain() error {
	left := 0
	for _, b := range r.brokers {
		if len(b.sessions) > 0 {
			r.marks.hit(markDrained)
		}
		left++
		if err := b.node.DrainSessions(func() {
			if err := b.node.DrainShards(func() { left-- }); err != nil {
				r.failf("%s: drain shards: %v", b.name, err)
			}
		}); err != nil {
			return err
		}
	}
	if err := r.world.Run(stepsMost, func() bool { return left == 0 }); err != nil {
		return err
	}
	return r.world.Run(stepsMost, r.world.Idle)
}

// stop stops the nodes: nothing of them is left.
func (r *run) stop() error {
	for _, b := range r.brokers {
		b.node.System.StopAll()
	}
	if err := r.world.Run(stepsMost, r.stopped); err != nil {
		return err
	}
	if err := r.world.Run(stepsMost, r.world.Idle); err != nil {
		return err
	}
	for _, c := range r.all {
		c.link.client.fail(errLost) // whoever was never accepted
	}
	for _, b := range r.brokers {
		if err := b.zero("after the stop", "felix_client_connections", "felix_subscribers", "felix_publish_inflight_bytes", "felix_publish_queue_slots",
			"felix_frame_bytes", "felix_partial_frame_bytes", "felix_preauth_streams", "felix_tail_bytes", "felix_cache_bytes", "felix_sub_lagging", "felix_sub_reader_bytes", "felixd_actor_live"); err != nil {
			return err
		}
	}
	if err := r.world.Run(stepsMost, r.world.Idle); err != nil {
		return err
	}
	if armed := r.world.Timers(); len(armed) != 0 {
		return fmt.Errorf("timers are armed after the stop: %s", strings.Join(armed, ", "))
	}
	return nil
}

func (r *run) stopped() bool {
	for _, b := range r.brokers {
		if len(b.node.System.Live()) > 0 {
			return false
		}
	}
	return true
}
