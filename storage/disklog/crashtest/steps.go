package crashtest

import (
	"context"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/wire/id"
)

// step is one kind of step of a history, and how often it comes, among 100.
type step struct {
	what    string
	share   int
	disrupt bool // only with Options.Disrupt
	do      func(c *campaign)
}

func steps() []step {
	return []step{
		{"append", 43, false, (*campaign).append},
		{"step", 25, false, func(c *campaign) { c.exec.Step() }},
		{"run", 5, false, func(c *campaign) { c.exec.Run() }},
		{"seal", 3, false, (*campaign).seal},
		{"save a generation", 3, true, (*campaign).save},
		{"truncate", 4, true, (*campaign).truncate},
		{"reset", 2, true, (*campaign).reset},
		{"retain", 3, true, (*campaign).retain},
		{"retain to", 2, true, (*campaign).retainTo},
		{"compress", 3, true, (*campaign).compress},
		{"rest", 2, true, (*campaign).rest},
		{"snapshot", 1, true, (*campaign).snapshot},
		{"streamed snapshot", 2, true, (*campaign).stream},
		{"restart", 2, true, (*campaign).restart},
	}
}

// act is one step of the history.
func (c *campaign) act() {
	if c.broken {
		c.what = "restart of a broken log"
		c.restart()
		return
	}
	all, n := steps(), c.rng.IntN(100)
	for i := range all {
		s := &all[i]
		if n -= s.share; n >= 0 {
			continue
		}
		if s.disrupt && !c.o.Disrupt {
			s = &all[0]
		}
		c.what = s.what
		c.spoil()
		s.do(c)
		c.fault.Set(nil)
		return
	}
}

func (c *campaign) append() {
	keep := len(c.model.batches)
	var batches []*batch.Batch
	for range 1 + c.rng.IntN(3) {
		b := c.model.next(c.rng, c.model.generous)
		c.model.batches = append(c.model.batches, b)
		batches = append(batches, b)
	}
	end := c.model.end()
	c.log.Append(c.number(wait{
		append: true,
		then: func() {
			c.model.acked = end
			c.result.Acked += len(batches)
		},
		undo: func() { c.model.batches = c.model.batches[:keep:keep] },
	}), batches)
}

// seal asks for one with whatever is queued before and comes behind it.
func (c *campaign) seal() { c.log.Seal(c.number(wait{then: func() {}})) }

func (c *campaign) save() {
	c.model.generous++
	g := c.model.generous
	c.log.SaveGeneration(c.number(wait{then: func() { c.model.ackedGen = g }}), g)
	c.exec.Run()
}

func (c *campaign) truncate() {
	c.exec.Run()
	base, _, _ := c.log.Bounds()
	keep := len(c.model.batches) - c.rng.IntN(6)
	if c.broken || keep < 1 || c.model.batches[keep-1].End() < base {
		return
	}
	to := c.model.batches[keep-1].End()
	c.model.acked = min(c.model.acked, to)
	c.model.kept = nil
	c.log.TruncateTo(c.number(wait{then: func() {
		c.model.batches = c.model.batches[:keep:keep]
		c.model.acked = to
	}}), to)
	c.exec.Run()
	if !c.broken {
		c.save() // what follows has a generation of its own, so that it is not what was cut off
	}
}

func (c *campaign) reset() {
	c.exec.Run()
	if c.broken {
		return
	}
	to := c.model.end() + id.Offset(c.rng.IntN(50))
	c.model.reset = &to
	c.model.kept = nil
	c.log.ResetTo(c.number(wait{
		then: func() { c.model.restartAt(to) },
		undo: func() { c.model.reset = nil },
	}), to)
	c.exec.Run()
}

func (c *campaign) retain() {
	_, durable, _ := c.log.Bounds()
	c.model.floor = max(c.model.floor, durable)
	c.log.SetRetention(disklog.Retention{Bytes: 8 << 10})
	_, _, err := c.log.Retain(uint64(c.exec.Now().UnixMicro()), durable, 8<<10)
	c.maintained(err)
	c.model.removed, _, _ = c.log.Bounds()
}

// retainTo removes what lies before some batch, and less if that is not durable.
func (c *campaign) retainTo() {
	_, durable, _ := c.log.Bounds()
	if len(c.model.batches) == 0 {
		return
	}
	to := c.model.batches[c.rng.IntN(len(c.model.batches))].Base
	c.model.floor = max(c.model.floor, min(to, durable))
	_, _, err := c.log.RetainTo(to, durable, 8<<10)
	c.maintained(err)
	c.model.removed, _, _ = c.log.Bounds()
}

func (c *campaign) compress() {
	_, err := c.log.CompressSealed(context.Background(), 1<<20)
	c.maintained(err)
}

func (c *campaign) snapshot() {
	_, durable, _ := c.log.Bounds()
	c.maintained(c.log.SaveSnapshot("producers", durable, []byte("state")))
}

// maintained takes the result of what may fail on a disk that fails, and on no other.
func (c *campaign) maintained(err error) {
	if !c.o.Faults {
		c.fail(err)
	}
}

func (c *campaign) rest() {
	c.exec.Run()
	c.exec.Advance(25 * time.Second)
	c.exec.Run()
}

// restart ends the process and starts another one. What was under way when a log broke is then either there or not.
func (c *campaign) restart() {
	c.close()
	c.fault.Set(nil)
	c.result.Restarts++
	c.waits, c.next = map[uint64]wait{}, c.seq+1
	if c.failed != nil {
		return
	}
	if !c.broken {
		c.open()
		return
	}
	c.broken = false
	c.open()
	if c.failed == nil {
		c.fail(c.model.check(c.log))
		c.model.adopt(c.log)
	}
}
