package actors

import (
	"errors"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// spawnChild starts b as a child of the acting actor. The name is taken until the parent has seen the old incarnation's Terminated:
// protoactor would give it away earlier, and then take the new child for the old one.
func (w *wrapper) spawnChild(b *mailbox) error {
	if w.b.isClosed() {
		return ErrStopped
	}
	if _, taken := w.children[b.name]; taken {
		return ErrNameTaken
	}
	if w.children == nil {
		w.children = make(map[string]*mailbox)
	}
	b.path = w.b.path + "/" + b.name
	w.children[b.name] = b
	if err := b.sys.register(b, w.ctx.SpawnNamed); err != nil {
		delete(w.children, b.name)
		return err
	}
	return nil
}

// childGone notes that protoactor has seen the end of the child with that path.
func (w *wrapper) childGone(path string) {
	if len(path) <= len(w.b.path) {
		return
	}
	name := path[len(w.b.path)+1:]
	child, ok := w.children[name]
	if !ok {
		return
	}
	delete(w.children, name)
	if w.actor == nil || w.failure != nil {
		return
	}
	w.ended = append(w.ended, child.w.terminated())
	if w.b.isClosed() {
		w.tellEnded() // there will be no ordinary turn any more
	}
}

// watch registers this actor with target.
func (w *wrapper) watch(target *mailbox) {
	switch {
	case target == nil:
		w.b.notice(Terminated{})
	case target == w.b || w.children[target.name] == target || slices.Contains(w.watching, target):
	case target.watch(actorWatcher{w.b}):
		w.watching = append(w.watching, target)
	default:
		w.b.notice(target.w.terminated())
	}
}

func (w *wrapper) unwatch(target *mailbox) {
	i := slices.Index(w.watching, target)
	if i < 0 {
		return
	}
	w.watching = slices.Delete(w.watching, i, i+1)
	target.unwatch(actorWatcher{w.b})
}

// mapSpawnError turns protoactor's error into ours. Two siblings named a/b and a with a child b collide in its registry only.
func mapSpawnError(err error) error {
	if errors.Is(err, actor.ErrNameExists) {
		return ErrNameTaken
	}
	return err
}
