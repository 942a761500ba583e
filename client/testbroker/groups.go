package testbroker

import (
	"maps"
	"slices"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Group bounds unless Options say otherwise.
const (
	DefaultGroupVisibility  = 30 * time.Second
	DefaultGroupMaxAttempts = 5
)

// group is one group on one shard, under the lock of the log.
type group struct {
	cursor  id.Offset // what lies below is finished
	fresh   id.Offset // what lies at or above was never handed out
	settled map[id.Offset]bool
	claims  map[id.Offset]*claim
	dead    map[id.Offset]bool
	conns   map[*quic.Conn]int // by age
	taken   map[string]int     // the newest connection on which a member reclaimed
}

// claim is a record that was handed out and is not finished.
type claim struct {
	attempts, failures uint32
	held               bool
	until              time.Time // held
	notBefore          time.Time // owed
	member             string
	conn               int
}

// GroupView is how a group stands on a shard.
type GroupView struct {
	Cursor      id.Offset
	Held, Owed  []id.Offset
	DeadLetters []id.Offset
}

// group finds a group of the log, making it if need be. The lock is held.
func (l *log) group(name string) *group {
	g := l.groups[name]
	if g == nil {
		g = &group{
			cursor: l.base, fresh: l.base, settled: make(map[id.Offset]bool), claims: make(map[id.Offset]*claim),
			dead: make(map[id.Offset]bool), conns: make(map[*quic.Conn]int), taken: make(map[string]int),
		}
		l.groups[name] = g
	}
	return g
}

// Group shows a group of a shard of a stream, "namespace/stream".
func (b *Broker) Group(stream string, shard uint32, name string) GroupView {
	l := b.logs[stream][shard]
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.group(name)
	g.lapse(time.Now(), b.options.GroupMaxAttempts)
	v := GroupView{Cursor: g.cursor, DeadLetters: slices.Sorted(maps.Keys(g.dead))}
	for _, at := range slices.Sorted(maps.Keys(g.claims)) {
		if g.claims[at].held {
			v.Held = append(v.Held, at)
		} else {
			v.Owed = append(v.Owed, at)
		}
	}
	return v
}

// ForgetClaims makes everything that a group has handed out owed again, as the restart of a broker does: nobody failed.
func (b *Broker) ForgetClaims(stream string, shard uint32, name string) {
	l := b.logs[stream][shard]
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.group(name).claims {
		c.held, c.notBefore = false, time.Time{}
	}
	l.ring()
}

// lapse takes back what was claimed for too long.
func (g *group) lapse(now time.Time, most uint32) {
	for _, at := range slices.Sorted(maps.Keys(g.claims)) {
		if c := g.claims[at]; c.held && now.After(c.until) {
			g.failed(at, now, most)
		}
	}
}

// failed counts a delivery as failed: the record is owed again, or given up on.
func (g *group) failed(at id.Offset, notBefore time.Time, most uint32) {
	c := g.claims[at]
	c.held, c.notBefore = false, notBefore
	if c.failures++; c.failures >= most {
		g.dead[at] = true
		delete(g.claims, at)
		g.settled[at] = true
	}
}

// finish settles a record for good.
func (g *group) finish(l *log, at id.Offset) {
	delete(g.claims, at)
	if at >= g.cursor {
		g.settled[at] = true
	}
	g.advance(l)
}

// trim finishes what retention dropped.
func (g *group) trim(l *log) {
	for _, at := range slices.Sorted(maps.Keys(g.claims)) {
		if at < l.base {
			delete(g.claims, at)
		}
	}
	g.advance(l)
}

// advance moves the cursor over what is finished, and over offsets without a record.
func (g *group) advance(l *log) {
	for g.cursor < g.fresh {
		i := l.find(g.cursor)
		if hole := i == len(l.records) || l.records[i].offset != g.cursor; !hole && !g.settled[g.cursor] {
			return
		}
		delete(g.settled, g.cursor)
		g.cursor = g.cursor.Add(1)
	}
}

// reclaim takes back what a member holds on older connections, and returns it.
func (g *group) reclaim(m *wire.GroupPoll, conn int) (mine []id.Offset) {
	if !m.Reclaim || !m.Consumer.Set || g.taken[m.Consumer.V] >= conn {
		return nil
	}
	g.taken[m.Consumer.V] = conn
	for _, at := range slices.Sorted(maps.Keys(g.claims)) {
		if c := g.claims[at]; c.held && c.member == m.Consumer.V && c.conn < conn {
			c.held = false
			mine = append(mine, at)
		}
	}
	return mine
}

// owed are the records to be handed out again now, and when the next one is due or lapses; zero for none.
func (g *group) owed(now time.Time) (due []id.Offset, next time.Time) {
	for _, at := range slices.Sorted(maps.Keys(g.claims)) {
		c := g.claims[at]
		when := c.notBefore
		if c.held {
			when = c.until
		} else if !when.After(now) {
			due = append(due, at)
			continue
		}
		if next.IsZero() || when.Before(next) {
			next = when
		}
	}
	return due, next
}
