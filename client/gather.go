package client

import (
	"runtime"
	"sync"
)

// gathering lets requests of several callers of a connection leave together. Answers that came in one packet wake as many callers, of whom many
// ask again at once, and a request that is written by itself costs a packet, a system call and a wake of the connection at either end. So a
// caller puts its lane here. The first to do so lets those run that are ready to, and then writes what all lanes have that are here by
// then. It waits for nothing: where nobody else is ready, it goes on at once.
//
// A lane is in lanes once, while lane.gathered is set; somebody is about to write for it then. Safe for concurrent use.
type gathering struct {
	mu    sync.Mutex
	lanes []*lane
	spare []*lane // room for the next lanes
}

// write writes for a lane that has just been marked as gathered, now or in the hands of another caller. No lock of a lane is held.
func (g *gathering) write(l *lane) {
	if !g.join(l) {
		return
	}
	runtime.Gosched()
	all := g.take()
	for i, x := range all {
		x.writeGathered()
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

// gathers reports whether what the lane has to write is to leave with requests of others: there are some under way on its connection, and
// it is little. The lock is held.
func (l *lane) gathers() bool {
	return l.writable() && (l.pending.len() > 0 || l.control.link.busy.Load() > 1)
}

// writeGathered writes what is queued, unless the writer has done so meanwhile.
func (l *lane) writeGathered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gathered = false
	if l.out.chunks.len() > 0 && !l.writeNow() {
		l.ring()
	}
}
