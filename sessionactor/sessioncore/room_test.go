package sessioncore

import (
	"testing"

	"pgregory.net/rapid"
)

// sender is a lane as the lines see it: it sends so many requests to one shard, one after the other, and waits where there is no room.
type sender struct {
	d     *Demand
	left  int
	state string
}

// room is a shard with a small mailbox, and those who send to it.
type room struct {
	a       *Admission
	mailbox []*Demand
	size    int
	senders []*sender
	c       *ConnUse
}

func (r *room) post(d *Demand) bool {
	if len(r.mailbox) == r.size {
		return false
	}
	own := *d // what its outcome gives back
	r.mailbox = append(r.mailbox, &own)
	return true
}

// step makes the next step of a sender; false says that it can do nothing now.
func (r *room) step(s *sender) bool {
	switch s.state {
	case "free":
		if s.left == 0 {
			return false
		}
		s.state = "stand"
		if r.a.Admit(s.d) == LetIn {
			if r.post(s.d) {
				s.left--
				s.state = "free"
				return true
			}
			r.a.Withdraw(s.d)
		}
	case "stand":
		s.state = "waits"
		if r.a.AwaitRoom(s.d) {
			s.state = "tries"
		}
	case "waits":
		if !r.a.TakeRung(s.d) {
			return false
		}
		s.state = "tries"
	case "tries":
		r.a.Wait(s.d)
		if s.state = "waits"; r.post(s.d) {
			s.left--
			s.state = "sent"
		} else {
			r.a.GiveUp(s.d)
		}
	case "sent": // the shard may have looked at it before the sender comes to this
		r.a.Reached(s.d)
		s.state = "free"
	}
	return true
}

func (r *room) turn() bool {
	if len(r.mailbox) == 0 {
		return false
	}
	d := r.mailbox[0]
	r.mailbox = r.mailbox[1:]
	r.a.Done(d.Tenant, d.Conn, d.Shard, 1, d.Bytes)
	return true
}

// However sends, turns and wakes interleave, nobody waits for room while the mailbox is empty.
func TestNobodyIsLeftWaitingForRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &room{a: NewAdmission(DefaultAdmission(4, 1<<20)), size: rapid.IntRange(1, 3).Draw(t, "mailbox"), c: roomy()}
		tenant := &TenantUse{}
		for range rapid.IntRange(2, 5).Draw(t, "senders") {
			s := &sender{left: rapid.IntRange(1, 4).Draw(t, "requests"), state: "free"}
			s.d = &Demand{Tenant: tenant, Conn: r.c, Shard: 1, Bytes: 1, Ring: func() {}}
			r.senders = append(r.senders, s)
		}
		for _, who := range rapid.SliceOfN(rapid.IntRange(0, len(r.senders)), 0, 60).Draw(t, "order") {
			if who == len(r.senders) {
				r.turn()
			} else {
				r.step(r.senders[who])
			}
		}
		for moved := true; moved; {
			moved = r.turn()
			for _, s := range r.senders {
				moved = r.step(s) || moved
			}
		}
		for i, s := range r.senders {
			if s.left > 0 || s.state != "free" {
				t.Fatalf("sender %d has %d left and %s, and nothing happens any more", i, s.left, s.state)
			}
		}
		if slots, _ := r.a.InUse(); slots != 0 || len(r.a.full) != 0 {
			t.Fatalf("%d slots are in use and %d lines are kept", slots, len(r.a.full))
		}
	})
}
