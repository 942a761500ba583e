package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/groupcore"
)

// groupPlan is how a durable world uses a consumer group; most have none.
type groupPlan struct {
	On      bool
	Name    string
	Long    bool // its name is so long, and records fail so often, that its logs are compacted
	Workers int
	Polls   int // of one worker
	Seeks   bool
	Late    bool              // who uses it comes late after each start: what a power cut took may be something else by then
	Core    groupcore.Options // without the name
}

// groupWorlds: one durable world in so many has a group, and those with caches are others.
const groupWorlds = 3

// newGroupPlan draws how a world uses its group.
func newGroupPlan(seed uint64) groupPlan {
	if seed%groupWorlds != 2 {
		return groupPlan{}
	}
	r := rand.New(rand.NewPCG(seed, 0x67726f7570))
	p := groupPlan{On: true, Name: "workers", Workers: 2 + r.IntN(3), Polls: 8 + r.IntN(12), Seeks: r.IntN(4) == 0, Late: r.IntN(4) == 0, Core: groupcore.DefaultOptions("")}
	p.Long = r.IntN(4) == 0
	o := &p.Core
	o.Visibility = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, time.Second}[r.IntN(3)]
	o.MaxVisibility = o.Visibility + time.Duration(r.IntN(2000))*time.Millisecond
	o.MaxAttempts = []uint32{0, 2, 3, 5}[r.IntN(4)]
	o.BackOff = [][]time.Duration{nil, {0, 5 * time.Millisecond, 10 * time.Millisecond}, {0, 200 * time.Millisecond}}[r.IntN(3)]
	o.WriteRetry = []time.Duration{5 * time.Millisecond, 200 * time.Millisecond}[r.IntN(2)]
	o.ParkedRetry = 100 * time.Millisecond
	o.IdleAfter = []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, 10 * time.Minute}[r.IntN(3)]
	if r.IntN(3) == 0 {
		o.MaxInFlight = 4 + r.IntN(12)
	}
	if r.IntN(4) == 0 {
		o.MaxDeadLetters = 1 + r.IntN(3)
	}
	if r.IntN(4) == 0 {
		o.MaxUnwritten = 4 + r.IntN(8)
	}
	if p.Long {
		p.Name += strings.Repeat("-", groupcore.MaxGroupBytes-len(p.Name))
		p.Workers, p.Polls = 4, 120
		o.MaxAttempts, o.BackOff, o.IdleAfter = 0, nil, 10*time.Minute
	}
	return p
}

// settings are those of a node.
func (p *groupPlan) settings(defect Defect) shardactor.GroupSettings {
	s := shardactor.DefaultGroupSettings()
	s.Options = p.Core
	if defect == OneAttemptMore && p.Core.MaxAttempts > 0 {
		s.Options.MaxAttempts++
	}
	return s
}

// limited reports whether a delivery of this number may not be the only one of its number.
func (p *groupPlan) limited(number uint32) bool {
	return p.Core.MaxAttempts > 0 && number >= p.Core.MaxAttempts
}

// visible is how long a claim stands for which d was asked for, on the node's clock.
func (p *groupPlan) visible(d time.Duration) time.Duration {
	if d <= 0 {
		d = p.Core.Visibility
	}
	return min(d, p.Core.MaxVisibility)
}

// String is what a trace says of it.
func (p *groupPlan) String() string {
	return fmt.Sprintf("group: %v, %d workers, %d polls each, at most %d attempts, seeks: %v", p.On, p.Workers, p.Polls, p.Core.MaxAttempts, p.Seeks)
}
