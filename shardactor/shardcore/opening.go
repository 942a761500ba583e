package shardcore

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
)

// open starts anew at a generation.
func (c *Core) open(at At, in Open) {
	c.abandonClaims(reopened, func() *wire.Refusal {
		return unavailable("not_ready", "the shard is opened anew, nothing was done; repeat the request")
	})
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
	for i, tail := range in.Tails {
		if Log(i) == LogMain || tail > 0 || c.logs[i] != nil {
			l := c.log(Log(i))
			l.generation = r.generation
			l.begin(tail)
		}
	}
	c.log(LogMain).base = in.Base
	if c.producers = in.Producers; c.producers == nil {
		c.producers = NewProducers()
	}
	c.producers.Trim(in.Base)
	if c.opts.Blocking {
		c.released = in.Tails[LogMain]
	}
	r.recovered = true
	c.save(r)
}

// save persists the generation.
func (c *Core) save(r opening) {
	r.save, r.retry = c.Number(), 0
	c.role = r
	c.emit(Save{Seq: r.save, Generation: r.generation})
}

// saveFailed waits a while and tries again: the generation is stored nowhere, and nothing was done under it.
func (c *Core) saveFailed(at At, r opening) {
	r.save, r.retry = 0, at.Mono+max(c.opts.SaveRetry, time.Nanosecond)
	c.role = r
}

// lead begins to serve: the generation is safe. What the logs hold is readable; a log other than main that is empty may not be there.
func (c *Core) lead(at At, r opening) {
	for i, l := range c.logs {
		if Log(i) == LogMain || l != nil && l.commit > 0 {
			c.emit(Readable{Log: Log(i), End: l.commit})
		}
	}
	c.become(at, leading{generation: r.generation}, "recovered")
}

// logOpened takes over what a log holds that was opened later than the others. What it holds is readable.
func (c *Core) logOpened(in LogOpened) {
	l := c.log(in.Log)
	if in.Log == LogMain || l.tail != 0 && l.broken == "" {
		panic(fmt.Sprintf("shardcore: log %d was opened at %d, and is at %d already", in.Log, in.Tail, l.tail))
	}
	l.begin(in.Tail)
	if in.Tail > 0 {
		c.emit(Readable{Log: in.Log, End: in.Tail})
	}
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
