package segment

import (
	"slices"

	"github.com/felixd/felixd/wire/id"
)

// The offsets of some logs are never given twice, since clients keep them and compare with them: the versions of a cache. Where an append is
// acknowledged before it is on the device, a power cut may take offsets back that somebody was told of. The log passes over them then: it goes
// on behind a batch that nobody reads and that has those offsets, of kind GenerationStart. What there is to know of them is kept in the lost ends
// of the replica file, of which DeadLetters is 0 here:
//
//   - one that lies before the log's end says that what was told at End up to, but not including, Cursors may have been lost;
//   - one that reaches up to the log's end or beyond it is a reservation: offsets below Cursors may be told of. It is durable before they are,
//     and goes when the log is closed in order.

// PassOver is decided when such a log was found with records from base up to end: which lost ends are kept from now on, and the offset
// at which it goes on, which is end if nothing can have been lost.
func PassOver(lost []LostEnd, base, end id.Offset) (kept []LostEnd, next id.Offset) {
	told := end
	for _, x := range lost {
		switch {
		case x.Cursors >= end:
			told = max(told, x.Cursors)
		case x.Cursors >= base: // else whoever comes from there comes from before the log's beginning
			kept = append(kept, x)
		}
	}
	if told == end {
		return bounded(kept), end
	}
	// A reader that was told of everything below told is not to be one that goes on where the log does.
	return bounded(append(kept, LostEnd{End: end, Cursors: told})), told.Add(1)
}

// bounded leaves room for one more: the oldest are joined, so that who comes from in between begins anew without need.
func bounded(lost []LostEnd) []LostEnd {
	for len(lost) >= MaxLostEnds {
		lost[1].End = lost[0].End
		lost = lost[1:]
	}
	return lost
}

// Reserve adds a reservation, for a log that goes on at from: offsets below until may be told of. It stands last, in place of the one before.
func Reserve(lost []LostEnd, from, until id.Offset) []LostEnd {
	return append(Unreserve(lost, from), LostEnd{End: from, Cursors: until})
}

// Unreserve takes the reservation out, of a log that went on at from when it was opened.
func Unreserve(lost []LostEnd, from id.Offset) []LostEnd {
	return slices.DeleteFunc(slices.Clone(lost), func(x LostEnd) bool { return x.End >= from })
}

// PassedOver reports whether a reader that was told of all offsets below o was told of some that were lost, in a log that went on at from when it was
// opened, and where a reader that begins anew does not miss anything: behind them.
func PassedOver(lost []LostEnd, from, o id.Offset) (next id.Offset, yes bool) {
	if o >= from {
		return o, false
	}
	for _, x := range lost {
		if x.End < o && o <= x.Cursors {
			return x.Cursors.Add(1), true
		}
	}
	return o, false
}
