package groupcore

import (
	"math"
	"slices"

	"github.com/felixd/felixd/wire/id"
)

// Want asks for room for more records in play: for Records that are not yet, and for Must that are already.
type Want struct{ Records, Must int }

// ration is what a group knows of the records that it may have in play, while Options.Rationed.
type ration struct {
	granted int  // beyond FreeClaims
	wants   Want // if asking
	asking  bool
	later   bool // there was no more; a Granted comes when there is
}

// Wants is what a rationed core asks for before it goes on. The answer, a Granted, has to be the next input, so that requests take effect in the
// order they came. False if it asks for nothing. Look after New and after each Step.
func (c *Core) Wants() (Want, bool) { return c.ration.wants, c.ration.asking }

// room is how many more records may be in play.
func (c *Core) room() int {
	if !c.opts.Rationed {
		return math.MaxInt
	}
	return max(0, FreeClaims+c.ration.granted-len(c.play.all))
}

// asksFirst asks for the room that a poll needs for records which are not in play yet, unless it has it or is known not to get it now. It
// reports whether to wait for the answer.
func (c *Core) asksFirst(p *poll) bool {
	if !c.opts.Rationed || c.ration.later || !c.hasFresh() {
		return false
	}
	fresh := min(p.most, c.opts.MaxInFlight-c.play.held()) - c.play.counts[owed] // what is owed comes first
	if n := c.committed.Since(c.next); n < uint64(max(fresh, 0)) {
		fresh = int(n)
	}
	lacks := fresh - c.room()
	if lacks <= 0 {
		return false
	}
	c.ration.ask(Want{Records: steps(lacks)})
	return true
}

// balance has what is in play counted that was not granted, as what the logs brought along, and gives back what is not needed any more: all
// but a step, so that a few records more or less need no asking, and that one too when hardly anything is in play.
func (c *Core) balance() {
	x, n := &c.ration, len(c.play.all)
	if !c.opts.Rationed || c.stopped != nil || x.asking {
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
		c.emit(Spare{spare})
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
