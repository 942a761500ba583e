package client

import (
	"slices"
	"sync"
)

// life is what Close has to end: the goroutines of a client and its connections.
type life struct {
	mu     sync.Mutex
	sealed bool
	links  []*link
	work   sync.WaitGroup
}

// spawn runs f in a goroutine that Close waits for. It reports false, and f does not run, once Close has begun.
func (l *life) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed {
		return false
	}
	l.work.Go(f)
	return true
}

// adopt is spawn for the goroutine of a connection, which Close finds until f returns.
func (l *life) adopt(k *link, f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed {
		return false
	}
	l.links = append(l.links, k)
	l.work.Go(func() {
		f()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.links = slices.DeleteFunc(l.links, func(other *link) bool { return other == k })
	})
	return true
}

// seal lets nothing new begin.
func (l *life) seal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealed = true
}

// open are the connections that have not ended.
func (l *life) open() []*link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.links)
}
