package main

import (
	"fmt"
	"time"
)

// sample is what can be seen at one moment.
type sample struct {
	at        time.Time
	published uint64        // records acknowledged
	waited    time.Duration // in which the broker held the publisher
	readers   []tally       // the first is the one that gets slow
	held      int64         // bytes that the broker holds for the stream and its readers, by its own gauges
	heap      int64         // live heap of the whole process, bytes
}

// row is one phase.
type row struct {
	phase     string
	published float64 // records a second
	withheld  float64 // records a second that were not published because the broker held the publisher
	slow      float64 // records a second that the first reader received
	slowLost  uint64
	others    float64 // the same for the slowest of the others
	otherLost uint64  // of all others together
	held      int64   // most bytes held at any moment
	heap      int64   // most live heap at any moment, bytes
}

// update computes the row from its first sample and the newest. rate is what the publisher is to publish in a second.
func (r *row) update(from, now sample, rate int) {
	seconds := now.at.Sub(from.at).Seconds()
	if seconds <= 0 {
		return
	}
	r.published = float64(now.published-from.published) / seconds
	r.withheld = float64(rate) * (now.waited - from.waited).Seconds() / seconds
	r.otherLost = 0
	for i := range now.readers {
		received := float64(now.readers[i].received-from.readers[i].received) / seconds
		lost := now.readers[i].lost - from.readers[i].lost
		switch {
		case i == 0:
			r.slow, r.slowLost = received, lost
		case i == 1 || received < r.others:
			r.others = received
		}
		if i > 0 {
			r.otherLost += lost
		}
	}
	r.held = max(r.held, now.held)
	r.heap = max(r.heap, now.heap)
}

// share is the part that the others received of what the broker let be published or should have. What a busy machine takes from
// publisher and subscribers alike does not count.
func (r *row) share() float64 { return r.others / (r.published + r.withheld) }

// report is what one policy did.
type report struct {
	policy     policy
	rate       int   // records a second that were to be published
	rows       []row // one for each phase
	bound      int64 // most bytes that may be held
	heapBefore int64
	published  uint64  // records in all
	total      []tally // of each reader, at the end
	counted    uint64  // records that the broker says it dropped
}

// isolationLeast is what the others must keep of the rate they had when everybody read.
const isolationLeast = 0.85

// heapAllowance is what the process may hold beside the broker's records: the publisher's 4 MiB in flight, buffers of
// connections, and the garbage between two collections.
const heapAllowance = 64 << 20

// unclear says why the rates of the phases cannot be compared, or "": the machine was too busy to carry the load in one of them.
func (r report) unclear() string {
	for _, x := range r.rows {
		if due := x.published + x.withheld; r.policy == dropNew && !(due >= isolationLeast*float64(r.rate)) {
			return fmt.Sprintf("this machine published %.0f of %d records a second while %q, without the broker's doing", due, r.rate, x.phase)
		}
	}
	return ""
}

// broken lists the claims that did not hold; none is success. Rates are judged only if they can be compared.
func (r report) broken() (out []string) {
	judged := r.policy == dropNew && r.unclear() == ""
	for i, x := range r.rows {
		if x.otherLost > 0 {
			out = append(out, fmt.Sprintf("subscribers that kept up lost %d records while %q", x.otherLost, x.phase))
		}
		if share := x.share() / r.rows[0].share(); judged && i > 0 && !(share >= isolationLeast) {
			out = append(out, fmt.Sprintf("subscribers that kept up had %.0f %% of their rate while %q, want %.0f %% at least", 100*share, x.phase, 100*isolationLeast))
		}
		if x.held > r.bound {
			out = append(out, fmt.Sprintf("the broker held %s while %q, and its bound is %s", mebibytes(x.held), x.phase, mebibytes(r.bound)))
		}
		if most := r.heapBefore + r.bound + heapAllowance; x.heap > most {
			out = append(out, fmt.Sprintf("the process held %s while %q, and %s is the most that bound and clients explain", mebibytes(x.heap), x.phase, mebibytes(most)))
		}
	}
	return append(out, r.brokenCounts()...)
}

// brokenCounts compares the numbers in the records with one another and with the broker.
func (r report) brokenCounts() (out []string) {
	var lost uint64
	for i, t := range r.total {
		lost += t.lost
		if t.next != r.published {
			out = append(out, fmt.Sprintf("subscriber %d has seen the end of %d records, and %d were published", i+1, t.next, r.published))
		}
		if i > 0 && t.lost > 0 {
			out = append(out, fmt.Sprintf("subscriber %d kept up and lost %d records", i+1, t.lost))
		}
		if r.policy == block && i == 0 && t.lost > 0 {
			out = append(out, fmt.Sprintf("the slow subscriber lost %d records under block", t.lost))
		}
	}
	if lost != r.counted {
		out = append(out, fmt.Sprintf("subscribers miss %d records, and the broker counted %d", lost, r.counted))
	}
	return out
}

// summary says in a line what the policy did.
func (r report) summary() string {
	least := 1.0
	slowest := r.rows[0].published
	for _, x := range r.rows[1:] {
		least = min(least, x.share()/r.rows[0].share())
		slowest = min(slowest, x.published)
	}
	if r.policy == dropNew {
		return fmt.Sprintf("the slow subscriber lost %d of %d records, as the broker counted; the others lost none and kept %.0f %% of their rate",
			r.total[0].lost, r.published, 100*least)
	}
	return fmt.Sprintf("nobody lost any of %d records; publishing fell from %.0f to %.0f a second while one subscriber did not keep up",
		r.published, r.rows[0].published, slowest)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
