package shardcore

import "fmt"

// check verifies the invariants, all but the contents of tables, in constant time but for the appends on their way.
func (c *Core) check() error {
	for i := range c.logs {
		claims := 0 // records claimed in this turn, not in an Append yet
		if Log(i) == LogMain {
			claims = len(c.claims)
		}
		if err := c.logs[i].check(Log(i), claims > 0); err != nil {
			return err
		}
	}
	claimed := &c.logs[LogMain]
	answered := c.answerable()
	if len(c.pending) > 0 {
		first, last := c.pending[0].batch, c.pending[len(c.pending)-1].batch
		if first.End() <= answered || last.End() > claimed.tail {
			return fmt.Errorf("pending writes [%d, %d) outside (%d, %d]", first.Base, last.End(), answered, claimed.tail)
		}
	}
	if n := len(c.duplicates); n > 0 && (len(c.pending) == 0 || c.duplicates[0].end <= answered || c.duplicates[n-1].end > claimed.tail) {
		return fmt.Errorf("%d duplicates wait for batches outside (%d, %d], and %d writes are pending", n, answered, claimed.tail, len(c.pending))
	}
	if c.base > claimed.commit || c.producers.end > claimed.durable {
		return fmt.Errorf("base %d, producers noted to %d; commit is %d and durable %d", c.base, c.producers.end, claimed.commit, claimed.durable)
	}
	if len(c.held) > 0 && !c.role.holds() {
		return fmt.Errorf("%d writes held while %s", len(c.held), c.role.name())
	}
	return nil
}
