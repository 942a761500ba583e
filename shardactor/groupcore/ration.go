package groupcore

import (
	"math"
	"slices"

	"github.com/felixd/felixd/wire/id"
)

// Budget says of what there is room.
type Budget uint8

const (
	// BudgetClaims is that of records in play, see NewClaims.
	BudgetClaims Budget = iota
	// BudgetKept is that of what groups keep, see NewKept.
	BudgetKept
)

// Want asks for room for more records in play, or units that are kept: for Records that are not yet, and for Must that are already.
type Want struct {
	Of            Budget
	Records, Must int
}

// ration is what a group knows of the records that it may have in play, while Options.Rationed, and of what it may keep, while Options.Counted.
type ration struct {
	granted int  // beyond FreeClaims; beyond FreeKeys
	backed  int  // of what is kept: so much of that had room, and was not only counted
	wants   Want // if asking
	asking  bool
	later   bool // there was no more; a Granted comes when there is
}

// Wants is what a rationed or counted core asks for before it goes on. The answer, a Granted of the same budget, has to be the next input, so
// that requests take effect in the order they came. False if it asks for nothing. Look after New and after each Step.
func (c *Core) Wants() (Want, bool) {
	if c.ration.asking {
		return c.ration.wants, true
	}
	return c.keep.wants, c.keep.asking
}

func (c *Core) rationOf(b Budget) *ration {
	if b == BudgetKept {
		return &c.keep
	}
	return &c.ration
}

// claimable is how many more records the node has room for in play.
func (c *Core) claimable() int {
	if !c.opts.Rationed {
		return math.MaxInt
	}
	return max(0, FreeClaims+c.ration.granted-len(c.play.all))
}

// room is how many more records may be handed out for the first time.
func (c *Core) room() int { return min(c.claimable(), c.keepable()) }

// asksFirst asks for the room that a poll needs for records which are not in play yet, unless it has it or is known not to get it now. It
// reports whether to wait for the answer.
func (c *Core) asksFirst(p *poll) bool { return c.asksToClaim(p) || c.asksToKeep(p) }

func (c *Core) asksToClaim(p *poll) bool {
	if !c.opts.Rationed || c.ration.later || !c.hasFresh() {
		return false
	}
	lacks := c.freshFor(p) - c.claimable()
	if lacks <= 0 {
		return false
	}
	c.ration.ask(Want{Records: steps(lacks)})
	return true
}

// freshFor is how many records a poll is to be handed out for the first time, as far as they may be in flight and kept.
func (c *Core) freshFor(p *poll) int {
	n := min(p.most, c.opts.MaxInFlight-c.play.held()) - c.play.counts[owed] // what is owed comes first
	if c.keep.later {
		n = min(n, c.keepable())
	}
	if fresh := c.committed.Since(c.next); fresh < uint64(max(n, 0)) {
		n = int(fresh)
	}
	return n
}

// balance has what is in play counted that was not granted, as what the logs brought along, and gives back what is not needed any more: all
// but a step, so that a few records more or less need no asking, and that one too when hardly anything is in play.
func (c *Core) balance() {
	x, n := &c.ration, len(c.play.all)
	if _, asking := c.Wants(); !c.opts.Rationed || c.stopped != nil || asking {
		return
	}
	if must := n - FreeClaims - x.granted; must > 0 {
		x.ask(Want{Must: must})
		return
	}
	need := 0
	if n > FreeClaims/2 {
		need = steps(max(0, n-FreeClaims)) + claimStep
	}
	if spare := x.granted - need; spare > 0 {
		x.granted = need
		c.emit(Spare{Records: spare})
	}
	if x.granted == 0 && c.play.peak > slimAbove && c.backlog.empty() {
		c.slim()
	}
}

// steps rounds a number of records up to whole steps.
func steps(n int) int { return (n + claimStep - 1) / claimStep * claimStep }

func (x *ration) ask(w Want) { x.wants, x.asking = w, true }

// take takes what was granted.
func (x *ration) take(in Granted) {
	x.granted += in.Records
	x.backed += in.Records - x.wants.Must
	x.wants, x.asking, x.later = Want{}, false, in.Later
}

// slimAbove is how many records in play leave no more room behind than a group may keep: as many as one poll hands out at most, 200 KiB.
const slimAbove = 1024

// slim lets go of the room that a great many records in play, and their settlements, have left behind.
func (c *Core) slim() {
	c.play.slim()
	c.settled.spans = slices.Clone(c.settled.spans)
	c.backlog.slim()
	c.freePolls = nil
}

func (p *play) slim() {
	p.peak = len(p.all)
	p.byOffset, p.runs = make(map[id.Offset]*rec), make(map[id.Offset]*run)
	for _, r := range p.all {
		p.byOffset[r.offset] = r
		if r.run != nil {
			p.runs[r.run.start] = r.run
		}
	}
	p.all, p.free = slices.Clone(p.all), nil
	for _, h := range []*heap[*rec]{&p.timers, &p.retries, &p.returned} {
		h.items = slices.Clone(h.items)
	}
}

func (b *backlog) slim() {
	for i := range b.logs {
		l := &b.logs[i]
		l.onLog, l.changed, l.flying, l.now, l.next = make(map[dkey]bool), nil, nil, nil, nil
	}
}
