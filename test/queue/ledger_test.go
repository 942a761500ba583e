package queue

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/wire/id"
)

// ledger is what became of each record, as far as anybody was told.
type ledger struct {
	t        testing.TB
	mu       sync.Mutex
	jobs     map[place]*job
	settled  int // records whose ack was answered
	met      met
	problems int
}

// met is how often something happened that the campaign is about.
type met struct {
	deliveries, again, nacked, lateNacks, lateExtends, lateAcks, extended, crashes, dropped, gaveUp, unknown, refused int
}

type place struct {
	shard  uint32
	offset id.Offset
}

// job is one record.
type job struct {
	number  uint64
	settled time.Time // when an ack was answered
	gaveUp  time.Time // when a dead-letter request was
	maybe   bool      // an ack, or such a request, went without an answer
	last    *delivery
}

// delivery is one of a job. What is certain of its claim, by this process's clock: it stands from came until until, or ended if that is
// sooner, provided that its broker lives so long.
type delivery struct {
	job                *job
	m                  client.Message
	life               int64 // of the broker; -1 when that is not certain
	begun, came, until time.Time
	ended              time.Time // when it was begun to be settled
}

func newLedger(t testing.TB) *ledger { return &ledger{t: t, jobs: map[place]*job{}} }

const recordBytes = 256

// record is the content of record n: its number, then bytes that follow from it.
func record(n uint64) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, recordBytes), n)
	r := rand.New(rand.NewPCG(n, 7))
	for len(b) < recordBytes {
		b = binary.BigEndian.AppendUint64(b, r.Uint64())
	}
	return b[:recordBytes]
}

// publish notes where records are before anybody may tell of one: whoever does waits until publish has returned.
func (l *ledger) publish(shard uint32, numbers []uint64, publish func() (client.PublishResult, error)) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	r, err := publish()
	if err != nil || !r.HasOffset {
		l.t.Fatalf("publish: %+v, %v", r, err)
	}
	for i, n := range numbers {
		l.jobs[place{shard, r.Offset.Add(uint64(i))}] = &job{number: n}
	}
}

// wrong reports what must not be; called under the lock.
func (l *ledger) wrong(format string, args ...any) {
	if l.problems++; l.problems <= 20 {
		l.t.Errorf(format, args...)
	}
}

// limit is how many failures make a dead letter, and the highest number of a delivery.
const limit = 5

// delivered takes what one poll has brought. It began and came then, in those lives of the broker.
func (l *ledger) delivered(list []client.Message, began, came time.Time, visibility time.Duration, before, after int64) (all []*delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range list {
		d := &delivery{m: m, life: -1, begun: began, came: came, until: began.Add(visibility)}
		if before == after && before%2 == 0 {
			d.life = before
		}
		at := place{m.Shard, m.Offset}
		j := l.jobs[at]
		if j == nil {
			l.wrong("%v was delivered, and nothing is known to be there", at)
			continue
		}
		d.job = j
		l.judge(at, j, d)
		if l.met.deliveries++; j.last != nil {
			l.met.again++
		}
		if j.last == nil || j.last.came.Before(began) { // else it is not certain which of them is newer
			j.last = d
		}
		all = append(all, d)
	}
	return all
}

// judge compares a delivery with what is known.
func (l *ledger) judge(at place, j *job, d *delivery) {
	if string(d.m.Payload) != string(record(j.number)) {
		l.wrong("%v: the content is not that of record %d", at, j.number)
	}
	if d.m.Attempts < 1 || d.m.Attempts > limit {
		l.wrong("%v: delivery number %d", at, d.m.Attempts)
	}
	if !j.settled.IsZero() && d.begun.After(j.settled) {
		l.wrong("%v: delivered again by a poll that began %v after its ack was answered", at, d.begun.Sub(j.settled))
	}
	if !j.gaveUp.IsZero() && d.begun.After(j.gaveUp) {
		l.wrong("%v: delivered by a poll that began %v after it became a dead letter", at, d.begun.Sub(j.gaveUp))
	}
	p := j.last
	if p == nil || d.life < 0 || p.life != d.life || !p.came.Before(d.begun) {
		return
	}
	if (p.ended.IsZero() || p.ended.After(d.came)) && d.came.Before(p.until) {
		l.wrong("%v: two holders: delivery %d stands for another %v when delivery %d came", at, p.m.Attempts, p.until.Sub(d.came), d.m.Attempts)
	}
	if d.m.Attempts <= p.m.Attempts && p.m.Attempts < limit { // a restart counts no failure: then the last number is told more than once
		l.wrong("%v: delivery %d follows delivery %d", at, d.m.Attempts, p.m.Attempts)
	}
}

// ending notes that a delivery is about to be settled; an ack settles whoever holds the record.
func (l *ledger) ending(d *delivery, everybody bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, x := range []*delivery{d, d.job.last} {
		if x.ended.IsZero() && (x == d || everybody) {
			x.ended = now
		}
	}
}

// extended notes for how long a delivery stands now, from when the request began.
func (l *ledger) extended(d *delivery, began time.Time, by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.until = began.Add(by)
	l.met.extended++
}

// open reports whether nobody was answered, or nobody waited for the answer, so that it was done or was not.
func open(err error) bool {
	return errors.Is(err, client.ErrOutcomeUnknown) || errors.Is(err, client.ErrConnectionLost) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// acked notes what was said to an ack. sure says that the broker that handed the record out was the one that took the ack.
func (l *ledger) acked(d *delivery, sure bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && d.job.settled.IsZero():
		d.job.settled = time.Now()
		l.settled++
	case err == nil:
	case errors.Is(err, client.ErrStaleClaim) && sure:
		l.wrong("%d/%d: its broker knows delivery %d, and refused its ack: %v", d.m.Shard, d.m.Offset, d.m.Attempts, err)
	case errors.Is(err, client.ErrStaleClaim):
		l.met.refused++
	default: // also what ran out of tries, the first of which may have done it
		d.job.maybe = true
		l.met.unknown++
	}
}

// gaveUp is the same for a dead-letter request.
func (l *ledger) gaveUp(d *delivery, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		d.job.gaveUp = time.Now()
		l.met.gaveUp++
	case open(err):
		l.met.unknown++
	default:
		l.met.refused++
	}
}

// late takes the answer to a nack or an extend of a claim that had lapsed in the same broker: it must be refused.
func (l *ledger) late(d *delivery, what string, count *int, sure bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch *count++; {
	case err == nil && sure:
		l.wrong("%d/%d: a late %s of delivery %d was taken", d.m.Shard, d.m.Offset, what, d.m.Attempts)
	case err != nil && !errors.Is(err, client.ErrStaleClaim) && sure && !open(err):
		l.wrong("%d/%d: a late %s was refused with %v", d.m.Shard, d.m.Offset, what, err)
	}
}

// count changes one number of what was met.
func (l *ledger) count(n *int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*n++
}

func (l *ledger) done() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled
}

// close compares with the dead letters in the end: each record was settled, or is one of them, and never both.
func (l *ledger) close(dead map[place]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	settled, unsure := 0, 0
	for at, j := range l.jobs {
		switch listed := dead[at]; {
		case listed && !j.settled.IsZero():
			l.wrong("%v: its ack was answered, and it is a dead letter", at)
		case !listed && j.settled.IsZero() && !j.maybe:
			l.wrong("%v: it is gone: nobody acked it, and it is no dead letter", at)
		case !listed && !j.gaveUp.IsZero() && j.settled.IsZero() && !j.maybe:
			l.wrong("%v: it was made a dead letter and is none", at)
		case !listed && j.settled.IsZero():
			unsure++
		case !listed:
			settled++
		}
	}
	for at := range dead {
		if l.jobs[at] == nil {
			l.wrong("%v is a dead letter and no record", at)
		}
	}
	if settled+unsure+len(dead) != len(l.jobs) {
		l.wrong("%d settled, %d settled by an ack without an answer, %d dead letters; %d records", settled, unsure, len(dead), len(l.jobs))
	}
	l.t.Logf("%d records: %d settled, %d more by acks without an answer, %d dead letters; met: %s", len(l.jobs), settled, unsure, len(dead), fmt.Sprintf("%+v", l.met))
}
