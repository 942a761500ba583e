package shardcore

import (
	"fmt"
	"time"
)

// open starts anew at a generation.
func (c *Core) open(at At, in Open) {
	c.abandonClaims(reopened)
	c.become(at, opening{generation: in.Generation}, "assigned")
	c.emit(Recover{})
}

// recovered takes over what the logs hold and has the generation saved.
func (c *Core) recovered(in Recovered) {
	r, ok := c.role.(opening)
	if !ok || r.recovered {
		return // closed or reassigned meanwhile
	}
	if in.Base > in.Tails[LogMain] {
		panic(fmt.Sprintf("shardcore: a log from %d to %d was recovered", in.Base, in.Tails[LogMain]))
	}
	for i := range c.logs {
		c.logs[i].generation = r.generation
		c.logs[i].begin(in.Tails[i])
	}
	c.base = in.Base
	if c.producers = in.Producers; c.producers == nil {
		c.producers = NewProducers()
	}
	c.producers.Trim(c.base)
	if c.opts.Blocking {
		c.released = in.Tails[LogMain]
	}
	r.recovered = true
	c.save(r)
}

// save persists the generation.
func (c *Core) save(r opening) {
	c.seq++
	r.save, r.retry = c.seq, 0
	c.role = r
	c.emit(Save{Seq: c.seq, Generation: r.generation})
}

// saveFailed waits a while and tries again: the generation is stored nowhere, and nothing was done under it.
func (c *Core) saveFailed(at At, r opening) {
	r.save, r.retry = 0, at.Mono+max(c.opts.SaveRetry, time.Nanosecond)
	c.role = r
}

// lead begins to serve: the generation is safe.
func (c *Core) lead(at At, r opening) {
	c.emit(Readable{Log: LogMain, End: c.logs[LogMain].commit})
	c.become(at, leading{generation: r.generation}, "recovered")
}

func (c *Core) openFailed(at At, in OpenFailed) {
	if _, ok := c.role.(opening); !ok {
		return // closed, reassigned or draining meanwhile
	}
	if in.Damaged {
		c.become(at, damaged{reason: in.Reason}, in.Reason)
		return
	}
	c.become(at, closed{reason: in.Reason}, in.Reason)
}
