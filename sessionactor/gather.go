package sessionactor

import (
	"runtime"
	"sync"
)

// gatherMost is how many bytes of answers a lane may have that leave with those of others, and are not in the books of Answers until then.
const gatherMost = 8 << 10

// gathering lets answers of several lanes of a connection leave together. Requests that came in one packet are in the hands of as many read
// pumps, and an answer that is written by itself costs a packet, a system call and a wake of the connection at either end. So a pump whose
// lane has an answer puts it here. The first to do so lets those run that are ready to, and then flushes all that are here by then. It waits for
// nothing: where nobody else is ready, it goes on at once.
//
// A lane is in lanes once, while lane.gathered is set; somebody is about to flush it then. Safe for concurrent use.
type gathering struct {
	mu    sync.Mutex
	lanes []*lane
	spare []*lane // room for the next lanes
}

// flush flushes a lane that has just been marked as gathered, now or in the hands of another pump. No lock of a lane is held.
func (g *gathering) flush(l *lane) {
	if !g.join(l) {
		return
	}
	runtime.Gosched()
	all := g.take()
	for i, x := range all {
		x.flushGathered()
		all[i] = nil
	}
	g.keep(all)
}

// join puts a lane in; true makes the caller the one that takes all.
func (g *gathering) join(l *lane) (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lanes = append(g.lanes, l)
	return len(g.lanes) == 1
}

func (g *gathering) take() []*lane {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.lanes
	g.lanes, g.spare = g.spare[:0], nil
	return all
}

// keep keeps the room of what was taken.
func (g *gathering) keep(all []*lane) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spare = all[:0]
}

// gathers reports whether what the lane has to send is to leave with answers of others: they are there, and it is little. mu is held.
func (l *lane) gathers() bool {
	n := l.core.Pending()
	return n > 0 && n <= gatherMost && !l.writing && l.send != nil && l.session.astir.Load() > 1
}

func (l *lane) flushGathered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gathered = false
	l.flush()
}
