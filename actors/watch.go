package actors

import "sort"

// Watchable is any Ref.
type Watchable interface{ box() *mailbox }

// watcher hears of the end of an incarnation, once.
type watcher interface{ ended(Terminated) }

// actorWatcher is an actor that watches.
type actorWatcher struct{ b *mailbox }

func (w actorWatcher) ended(t Terminated) { w.b.notice(t) }

// chanWatcher is somebody outside who waits on a channel of capacity one.
type chanWatcher chan Terminated

func (w chanWatcher) ended(t Terminated) {
	w <- t
	close(w)
}

// watch registers w; it reports false when the incarnation is gone and w was not registered.
func (b *mailbox) watch(w watcher) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return false
	}
	if b.watchers == nil {
		b.watchers = make(map[watcher]uint64)
	}
	if _, ok := b.watchers[w]; !ok {
		b.watchSeq++
		b.watchers[w] = b.watchSeq
	}
	return true
}

// unwatch forgets w.
func (b *mailbox) unwatch(w watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.watchers, w)
}

// depart marks the incarnation as gone and returns its watchers in the order they registered.
func (b *mailbox) depart() []watcher {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
	list := make([]watcher, 0, len(b.watchers))
	for w := range b.watchers { // collected, then sorted
		list = append(list, w)
	}
	sort.Slice(list, func(i, j int) bool { return b.watchers[list[i]] < b.watchers[list[j]] })
	b.watchers = nil
	return list
}
