package shardcore

import "fmt"

// check verifies the invariants, all but the contents of tables, in constant time but for the appends on their way.
func (c *Core) check() error {
	for i, l := range c.logs {
		if l == nil {
			continue
		}
		if err := l.check(Log(i), c.answerable(Log(i))); err != nil {
			return err
		}
	}
	l, answered := c.log(LogMain), c.answerable(LogMain)
	if n := len(c.duplicates); n > 0 && (len(l.pending) == 0 || c.duplicates[0].end <= answered || c.duplicates[n-1].end > l.tail) {
		return fmt.Errorf("%d duplicates wait for batches outside (%d, %d], and %d writes are pending", n, answered, l.tail, len(l.pending))
	}
	if c.producers.end > l.durable {
		return fmt.Errorf("producers are noted to %d; durable is %d", c.producers.end, l.durable)
	}
	if len(c.held) > 0 && !c.role.holds() {
		return fmt.Errorf("%d writes held while %s", len(c.held), c.role.name())
	}
	return nil
}
