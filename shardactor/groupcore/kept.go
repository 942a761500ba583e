package groupcore

import "math"

// KeptUnit is what NewKept counts in, in bytes.
const KeptUnit = 64

// KeptKeyBytes is what a key in the logs of groups is counted with, in bytes, beside the name of its group: a settled range, a dead letter, the
// number of a record that is owed or claimed, a run of such. 55 are measured for its place in the directory of the shard, 92 for it in the index
// of the log, and 16 to 48 for what a group that is in memory has of it.
const KeptKeyBytes = 192

// KeptGroupBytes is what a group is counted with, in bytes, beside its name, whether it is in memory or in its logs alone, so that it can always
// come back: 6.6 KiB are measured for one in memory that does nothing, of which 0.3 are left when it rests, 4 more with FreeClaims in play, and
// FreeKeys are 3 KiB.
const KeptGroupBytes = 14 << 10

// FreeKeys is how many keys are part of KeptGroupBytes: so many that a group without room has no more because of what it hands out.
const FreeKeys = 16

// heldBackPlay is how many records above the position a group may have in play when new ones are handed out although it has no room: they have a
// number and a run each, and one range more than they are at most.
const heldBackPlay = 4

const _ = uint(FreeKeys - 3*heldBackPlay - 1)

// nameCopies is in how many places the name of a group is, beside those of its keys: in the index, the directory, and by which it runs.
const nameCopies = 3

// DefaultKept is 512 MiB for a node, which are as many records as DefaultClaims lets be in flight, and 18,000 groups or a million dead letters
// beside them. A quarter of it is each tenant's share.
func DefaultKept() ClaimLimits { return ClaimsOf(512 << 20) }

// NewKept returns a budget for what groups keep: that there are they, and the keys in their logs beyond FreeKeys of each. It is one in units of
// KeptUnit bytes, of which nothing is used. A group enters it when it is made, or joins it when it is found in the logs, and holds what Kept says
// from then on; what it keeps more is counted as it comes. Nobody is refused a settlement by it, and what it is told to keep that it has no
// room for, it keeps all the same: it is held back before, see Core.keepable.
func NewKept(l ClaimLimits) *Claims { return newClaims(l, KeptUnit) }

// Kept is what a group is to hold of the budget for so many keys in its logs beside its position, in units.
func Kept(group string, keys int) int {
	n := KeptGroupBytes + (nameCopies+FreeKeys)*len(group)
	return (n+KeptUnit-1)/KeptUnit + keptBeyond(len(group), keys)
}

// keptBeyond is what the keys beyond FreeKeys are counted with.
func keptBeyond(name, keys int) int { return max(0, keys-FreeKeys) * keyUnits(name) }

// keyUnits is what a key is counted with, of a group whose name has so many bytes.
func keyUnits(name int) int { return (KeptKeyBytes + name + KeptUnit - 1) / KeptUnit }

// playKeys is how many keys the logs have of the group because of records that are in play, or will have when all is written: no more than three
// for each that is unfinished, and one.
func (c *Core) playKeys() int { return len(c.settled.spans) + c.play.singles + len(c.play.runs) }

// otherKeys is how many they have beside these and the position. What means nothing any more counts until it is deleted.
func (c *Core) otherKeys() int {
	n := len(c.dead.list)
	for i := range c.backlog.logs {
		n += len(c.backlog.logs[i].sweep)
	}
	return n
}

// keptKeys is how many keys are counted: a record that is unfinished counts as one, which it may become, or with those that there are already
// if they are more. What is listed as a dead letter and not finished counts as that.
func (c *Core) keptKeys() int {
	return c.otherKeys() + max(c.playKeys(), c.unfinished()-c.play.counts[listing])
}

func (c *Core) keptUnits() int { return keptBeyond(len(c.opts.Group), c.keptKeys()) }

// keptRoom is how many more keys there is room for; negative: so many were counted without.
func (c *Core) keptRoom() int {
	return FreeKeys + c.keep.backed/keyUnits(len(c.opts.Group)) - c.keptKeys()
}

// keepable is how many more records may be handed out for the first time for what they may leave behind. Where there is no room they are few, so
// that the position moves on, and what is kept becomes less by itself.
func (c *Core) keepable() int {
	if !c.opts.Counted {
		return math.MaxInt
	}
	return max(0, c.keptRoom(), heldBackPlay-c.unfinished())
}

// overfull reports whether more is kept than there is room for, now that there is none: then no record becomes a dead letter, which would be
// there until somebody takes it away.
func (c *Core) overfull() bool { return c.keep.later && c.keptRoom() < 0 }

// asksToKeep is the part of asksFirst that is about what is kept.
func (c *Core) asksToKeep(p *poll) bool {
	if !c.opts.Counted || c.keep.later || !c.hasFresh() {
		return false
	}
	fresh := min(c.freshFor(p), c.claimable())
	if fresh <= c.keepable() {
		return false
	}
	c.keep.ask(Want{Of: BudgetKept, Records: steps((fresh - c.keptRoom()) * keyUnits(len(c.opts.Group)))})
	return true
}

// backKept asks for the room that what the logs brought along never had.
func (c *Core) backKept() {
	if lacks := -c.keptRoom(); c.opts.Counted && lacks > 0 {
		c.keep.ask(Want{Of: BudgetKept, Records: steps(lacks * keyUnits(len(c.opts.Group)))})
	}
}

// balanceKept has what is kept counted, if there is room with a little more so that not each key takes asking, and gives back what is not needed
// any more: first what was counted without there being room.
func (c *Core) balanceKept() {
	x := &c.keep
	if _, asking := c.Wants(); !c.opts.Counted || c.stopped != nil || asking {
		return
	}
	n := c.keptUnits()
	switch more := n - x.granted; {
	case more > 0 && x.later:
		x.ask(Want{Of: BudgetKept, Must: more})
		return
	case more > 0:
		x.ask(Want{Of: BudgetKept, Records: steps(more) + claimStep})
		return
	}
	need := 0
	if c.keptKeys() > FreeKeys/2 {
		need = steps(n) + claimStep
	}
	if spare := x.granted - need; spare > 0 {
		x.granted = need
		x.backed = min(x.backed, need)
		c.emit(Spare{Of: BudgetKept, Records: spare})
	}
}
