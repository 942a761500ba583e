package client

import "time"

// extend prolongs the claims of what is in hand, each when a third of it has passed. It wakes up only for that.
func (k *Consumer) extend() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Stop()
		if next := k.extendDue(); !next.IsZero() {
			timer.Reset(max(0, next.Sub(k.client.now())))
		}
		select {
		case <-timer.C:
		case <-k.kick:
		case <-k.settling.Done():
			return
		}
	}
}

// extendDue asks for the extensions that are due and returns when the next is; zero when there is none.
func (k *Consumer) extendDue() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.client.now()
	k.next = time.Time{}
	for _, d := range k.all {
		switch {
		case d.state == settling || d.extending || d.gone != nil:
		case d.extendAt.After(now):
			if k.next.IsZero() || d.extendAt.Before(k.next) {
				k.next = d.extendAt
			}
		default:
			d.extending = true
			d.shard.send(&settlement{d: d, kind: extendIt, claim: d.claim, attempts: d.attempts})
		}
	}
	return k.next
}

// extended ends an extension, whatever came of it, and says when the next is due: with d.extendAt when it is that of a newer claim, for
// which nobody looked while the extension was under way. The lock is held.
func (d *delivery) extended(next time.Time) {
	d.extending = false
	if d.state != settling {
		d.planExtend(next)
	}
}

// planExtend says when the claim of a record is to be prolonged. The lock is held.
func (d *delivery) planExtend(at time.Time) {
	k := d.shard.consumer
	d.extendAt = at
	if !k.next.IsZero() && !at.Before(k.next) {
		return
	}
	k.next = at
	select {
	case k.kick <- struct{}{}:
	default:
	}
}
