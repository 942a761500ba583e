package groupcore

import (
	"fmt"
	"math"
	"slices"

	"github.com/felixd/felixd/wire/id"
)

// LostEnd is where the log of a stream ended when it was opened, while notes of its groups spoke of more: streams that are not synced before
// they are acknowledged lose their ends with the power, damaged ones when they are repaired, and the logs of groups are others. What comes at
// those offsets from then on is new, and no group may take it for what it has finished. So a note that stands before Before in its log means
// nothing at and past End; one that was written later is of what came anew.
type LostEnd struct {
	End    id.Offset
	Before [logCount]id.Offset // Unread: the log was not read since, so that everything in it was written before
}

// Unread is past the end of any log.
const Unread = id.Offset(math.MaxUint64)

// MaxLostEnds bounds a Lost.
const MaxLostEnds = 64

// Lost is all that has to be known of the ends a stream's log has lost. It is kept durably beside that log, and each change is durable before
// anything is appended there, or noted by a group: then no crash at whatever moment, and no group that is not asked for in a long time, lets an
// old note count for a new record. A Lost is never changed in place.
//
// The ends ascend, their places in the logs of groups do not fall, and of none everything is said by another. A group that is brought up writes
// anew what was cut of its notes, so that an end stays needed only for those that nobody has asked for since. Where there are too many all the
// same, those that no note needs are forgotten, and then the two oldest joined by their minimum: a group may be handed out again what it has
// finished, and is never kept from anything.
type Lost []LostEnd

// Until is where a note ends to mean anything that stands at an offset of a log; Unread if all of it is to be believed.
func (l Lost) Until(log Log, at id.Offset) id.Offset {
	for i := range l {
		if at < l[i].Before[log] {
			return l[i].End
		}
	}
	return Unread
}

// Unread is what has to be kept before the stream's log goes on, which ended at end when it was opened, if the logs of groups cannot be read.
func (l Lost) Unread(end id.Offset) Lost {
	next := l.with(LostEnd{End: end, Before: [logCount]id.Offset{Unread, Unread}})
	return next.joined()
}

// Read is what has to be kept before the stream's log goes on and any group is brought up, once the logs of groups were read: they end at tails,
// and notes calls back for all that stand in them, with their place and their Reach. It may be called more than once.
func (l Lost) Read(end id.Offset, tails [logCount]id.Offset, notes func(note func(log Log, at, reach id.Offset))) Lost {
	var next Lost
	for _, x := range l {
		for i := range x.Before {
			x.Before[i] = min(x.Before[i], tails[i]) // what comes there is not written yet, even where such a log was cut or made anew
		}
		if x.Before != [logCount]id.Offset{} {
			next = next.with(x)
		}
	}
	lost := false
	notes(func(log Log, at, reach id.Offset) { lost = lost || min(reach, next.Until(log, at)) > end })
	if lost {
		next = next.with(LostEnd{End: end, Before: tails})
	}
	if len(next) > MaxLostEnds {
		next = next.needed(notes).joined()
	}
	return next
}

// with adds an end of which the others say less: it is the latest.
func (l Lost) with(x LostEnd) Lost {
	if slices.ContainsFunc(l, func(o LostEnd) bool { return o.covers(&x) }) {
		return l
	}
	next := slices.DeleteFunc(slices.Clone(l), func(o LostEnd) bool { return x.covers(&o) })
	return append(next, x)
}

// covers reports whether x says all that o does.
func (x *LostEnd) covers(o *LostEnd) bool {
	for i := range x.Before {
		if x.Before[i] < o.Before[i] {
			return false
		}
	}
	return x.End <= o.End
}

// needed drops the ends that no note reaches beyond.
func (l Lost) needed(notes func(note func(log Log, at, reach id.Offset))) Lost {
	needed := make([]bool, len(l))
	notes(func(log Log, at, reach id.Offset) {
		for i := range l {
			if at < l[i].Before[log] {
				needed[i] = needed[i] || reach > l[i].End
				return
			}
		}
	})
	var next Lost
	for i, x := range l {
		if needed[i] {
			next = append(next, x)
		}
	}
	return next
}

// joined joins the oldest ends if there are too many.
func (l Lost) joined() Lost {
	for len(l) > MaxLostEnds {
		oldest := l[0].End
		l = slices.Clone(l[1:])
		l[0].End = oldest
	}
	return l
}

// check verifies the invariants.
func (l Lost) check() error {
	for i := 1; i < len(l); i++ {
		x, o := &l[i-1], &l[i]
		if o.End <= x.End || o.Before == x.Before || o.Before[LogCursors] < x.Before[LogCursors] || o.Before[LogDeadLetters] < x.Before[LogDeadLetters] {
			return fmt.Errorf("lost end %d, %+v, comes after %+v", i, *o, *x)
		}
	}
	if len(l) > MaxLostEnds {
		return fmt.Errorf("%d lost ends", len(l))
	}
	return nil
}
