package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// stop stops the node in order: nothing of it is left.
func (r *drun) stop() error {
	n := r.node
	r.finished = true
	if r.world.Rand().IntN(2) == 0 {
		drained := false
		if err := n.node.DrainSessions(func() {
			r.fail("drain shards", n.node.DrainShards(func() { drained = true }))
		}); err != nil {
			return err
		}
		if err := r.await("the node is drained", liveWithin, func() bool { return drained }); err != nil {
			return err
		}
	}
	n.node.System.StopAll()
	ended := func() bool { return len(n.node.System.Live()) == 0 && n.exec.open == 0 && !r.pumping(n) }
	if err := r.await("every actor has stopped, and every job and every pump has ended", time.Minute, ended); err != nil {
		return fmt.Errorf("%w; %d jobs", err, n.exec.open)
	}
	r.collect(n)
	if err := n.store.Close(); err != nil {
		return err
	}
	if open := n.mem.OpenFiles(); open != 0 {
		return fmt.Errorf("%d files are open after the stop", open)
	}
	clock := n.at.name + "/clock"
	for _, name := range r.world.Timers() {
		if name == clock {
			return fmt.Errorf("a timer of the node is armed after the stop")
		}
	}
	return nil
}

// pumping reports whether a pump of a node has something left to do, if only to see that it is over.
func (r *drun) pumping(n *dnode) bool {
	return slices.ContainsFunc(r.world.Alive(), func(name string) bool { return strings.HasPrefix(name, n.at.name+"/pump") })
}

// lookAgain starts the node once more, over what a power cut after the stop leaves: everything is there, whatever the mode.
func (r *drun) lookAgain() error {
	n := r.node
	image := n.mem.CrashHard()
	r.abandon(n)
	r.node, r.image, r.lost, r.finished = nil, image, false, false
	if err := r.startNode(); err != nil {
		return err
	}
	r.book.restarted()
	r.audit()
	if err := r.await("everything was read after the stop", liveWithin, func() bool { return r.busy == 0 }); err != nil {
		return err
	}
	if r.audits != 0 {
		return fmt.Errorf("%d shards were not read after the stop", r.audits)
	}
	if err := r.stillSettled(); err != nil {
		return err
	}
	r.finished = true
	r.abandon(r.node)
	return r.world.Run(durableSteps, func() bool { return r.world.Idle() && len(r.world.Timers()) == 0 })
}
