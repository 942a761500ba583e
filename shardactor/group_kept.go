package shardactor

import (
	"maps"
	"slices"

	"github.com/felixd/felixd/shardactor/groupcore"
)

// keptNames are the groups of one shard in the node's budget for what groups keep, in the shard's turns.
//
//  1. a name is in it exactly while its group runs, or has a key in a log that is open;
//  2. a group that does not run holds what groupcore.Kept says of its keys; one that does, at least that: its actor asks for more as it comes.
type keptNames struct {
	budget *groupClaims // of the node
	tenant string
	count  func(group string) (keys int, there bool) // in the logs
	byName map[string]*keptName
	stale  []string // that do not run, and changed in the batch at hand
}

type keptName struct {
	holder *groupcore.Holder
	runs   bool
}

// up says that a group is brought up, which is told in its inbox what it is given later. It returns what it holds beyond a group without keys,
// and for how much of that there was room, or false: it is a new one, and there is no room for that.
func (k *keptNames) up(group string, inbox *groupInbox) (beyond, backed int, ok bool) {
	x := k.byName[group]
	if x == nil {
		h := k.budget.enter(k.tenant, inbox, groupcore.Kept(group, 0))
		if h == nil {
			return 0, 0, false
		}
		x = k.add(group, h)
	}
	x.runs = true
	held, backed := k.budget.own(x.holder, inbox)
	base := groupcore.Kept(group, 0)
	return held - base, max(0, backed-base), true
}

// down says that a group has ended: it holds what its logs say from now on.
func (k *keptNames) down(group string) {
	k.byName[group].runs = false
	k.look(group)
}

// holder is that of a group in it.
func (k *keptNames) holder(group string) *groupcore.Holder { return k.byName[group].holder }

func (k *keptNames) add(group string, h *groupcore.Holder) *keptName {
	if k.byName == nil {
		k.byName = make(map[string]*keptName)
	}
	x := &keptName{holder: h}
	k.byName[group] = x
	return x
}

// changed notes that a key has come or gone. It is not kept.
func (k *keptNames) changed(key []byte) {
	if group, ok := groupcore.GroupOf(key); ok {
		if x := k.byName[string(group)]; x == nil || !x.runs {
			k.stale = append(k.stale, string(group))
		}
	}
}

// lookAgain looks at what has changed.
func (k *keptNames) lookAgain() {
	for _, group := range k.stale {
		k.look(group)
	}
	clear(k.stale)
	k.stale = k.stale[:0]
}

// look has a group that does not run hold what its logs say, whatever there is room for.
func (k *keptNames) look(group string) {
	x := k.byName[group]
	keys, there := k.count(group)
	switch {
	case x == nil && !there || x != nil && x.runs:
		return
	case !there:
		k.budget.leave(x.holder)
		delete(k.byName, group)
		return
	case x == nil:
		x = k.add(group, k.budget.join(k.tenant, nil))
	}
	k.budget.keep(x.holder, groupcore.Kept(group, keys))
}

// leave gives back everything: the shard and its groups have ended.
func (k *keptNames) leave() {
	for _, group := range slices.Sorted(maps.Keys(k.byName)) {
		k.budget.leave(k.byName[group].holder)
	}
	k.byName, k.stale = nil, nil
}
