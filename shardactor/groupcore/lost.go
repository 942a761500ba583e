package groupcore

import (
	"fmt"

	"github.com/felixd/felixd/wire/id"
)

// Lost is what the groups of a shard remember of a log that had lost its end when it was opened: where streams are not synced before they are
// acknowledged, a power cut may take records that a group has finished, and leave its note of that. What comes at their offsets from now on
// is new, and no group may take it for what it has finished. It is not safe for concurrent use: the shard's actor owns it.
//
//  1. once Looked, and only then, groups holds those whose notes reach beyond end and were not written anew;
//  2. a group in it is brought up with that end, however often, until the first durable batch of its cursors since: that one begins an epoch
//     in which the old notes mean nothing, and only after it a settlement above end may be answered.
type Lost struct {
	known  bool // end is
	end    id.Offset
	looked bool
	groups map[string]bool // true: it was brought up with end; iterated by nobody
}

// Begins says where the main log ended when it was opened, before anything was appended; only the first time counts.
func (l *Lost) Begins(end id.Offset) {
	if !l.known {
		l.end, l.known = end, true
	}
}

// Wanted reports whether the names of the groups whose notes reach beyond End are to be looked for now, in logs that can be read.
func (l *Lost) Wanted() (end id.Offset, ok bool) { return l.end, l.known && !l.looked }

// Found takes those names, and says which of them are to be brought up at once, if there is room for so many groups; the others are when
// somebody asks for them.
func (l *Lost) Found(names []string, room int) []string {
	if l.looked || !l.known {
		panic("groupcore: groups beyond an end that nobody asked for")
	}
	if l.looked = true; len(names) > 0 {
		l.groups = make(map[string]bool, len(names))
	}
	for _, name := range names {
		l.groups[name] = false
	}
	return names[:min(len(names), max(room, 0))]
}

// BringUp says with what end of the log a group is brought up, if it is one of them: everything above is news to it.
func (l *Lost) BringUp(group string) (end id.Offset, cut bool) {
	if _, cut = l.groups[group]; cut {
		l.groups[group] = true
	}
	return l.end, cut
}

// Durable says that a batch of a group's cursors is.
func (l *Lost) Durable(group string) {
	if l.groups[group] {
		delete(l.groups, group)
	}
}

// Standing reports whether notes may stand in the logs that must not be believed by the next process: as long as they do, the log must not go
// on without them being written anew.
func (l *Lost) Standing() bool { return len(l.groups) > 0 }

// check verifies the invariants.
func (l *Lost) check() error {
	if len(l.groups) > 0 && (!l.looked || !l.known) {
		return fmt.Errorf("%d groups beyond an end that nobody looked for", len(l.groups))
	}
	return nil
}
