package sessioncore

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/wire/id"
)

// bench is an admission with requests that wait, each of which counts its rings.
type bench struct {
	a     *Admission
	rings map[*Demand]int
}

func newBench(l AdmissionLimits) *bench {
	return &bench{a: NewAdmission(l), rings: map[*Demand]int{}}
}

func (b *bench) demand(u *TenantUse, c *ConnUse, shard id.ShardID, bytes int) *Demand {
	d := &Demand{Tenant: u, Conn: c, Shard: shard, Bytes: bytes}
	d.Ring = func() { b.rings[d]++ }
	return d
}

func (b *bench) letIn(u *TenantUse, c *ConnUse, shard id.ShardID, bytes int) *Demand {
	d := b.demand(u, c, shard, bytes)
	if v := b.a.Admit(d); v != LetIn {
		panic(fmt.Sprint("not let in: ", v))
	}
	return d
}

func (b *bench) wait(u *TenantUse, c *ConnUse, shard id.ShardID, bytes int) *Demand {
	d := b.demand(u, c, shard, bytes)
	b.a.Wait(d)
	return d
}

func granted(list ...*Demand) (which []int) {
	for i, d := range list {
		if d.Granted() {
			which = append(which, i)
		}
	}
	return which
}

func (b *bench) done(d *Demand) { b.a.Done(d.Tenant, d.Conn, d.Shard, 1, d.Bytes) }

var oneAtATime = AdmissionLimits{SlotsPerTenant: 1, Slots: 2, BytesPerTenant: 1 << 20, Bytes: 4 << 20}

func TestExactlyTheOneThatWaitsLongestIsWokenForAPlace(t *testing.T) {
	b := newBench(oneAtATime)
	var u TenantUse
	c := roomy()
	first := b.letIn(&u, c, 1, 1)
	line := []*Demand{b.wait(&u, c, 1, 1), b.wait(&u, c, 2, 1), b.wait(&u, c, 3, 1)}
	if v := b.a.Admit(b.demand(&u, c, 4, 1)); v != NoRoom {
		t.Errorf("somebody was let in past those who wait: %d", v)
	}
	b.done(first)
	if got := granted(line...); !slices.Equal(got, []int{0}) || b.rings[line[0]] != 1 || len(b.rings) != 1 {
		t.Errorf("%v were let in, rings %v", got, len(b.rings))
	}
	b.a.GiveUp(line[1])
	b.a.Reached(line[0])
	b.done(line[0])
	if got := granted(line...); !slices.Equal(got, []int{2}) {
		t.Errorf("%v were let in, want the one that still waits", got)
	}
	b.a.GiveUp(line[2]) // let in, and did not make use of it
	if slots, bytes := b.a.InUse(); slots != 0 || bytes != 0 || !u.Idle() || len(c.shards) != 0 {
		t.Errorf("%d slots and %d bytes are left", slots, bytes)
	}
}

func TestAShardThatIsStuckKeepsNobodyOfItsConnectionWaitingForOthers(t *testing.T) {
	b := newBench(AdmissionLimits{SlotsPerTenant: 100, Slots: 100, BytesPerTenant: 1 << 20, Bytes: 1 << 20})
	var u TenantUse
	c := NewConnUse(20)
	stuck := b.letIn(&u, c, 1, 10)
	large, small := b.wait(&u, c, 1, 8), b.wait(&u, c, 1, 2)
	if b.a.Admit(b.demand(&u, c, 2, 10)) != LetIn {
		t.Error("a request for another shard was not let in")
	}
	if b.a.Admit(b.demand(&u, c, 1, 0)) != OverHalf || len(granted(large, small)) != 0 {
		t.Error("the order of those who wait for the shard is not kept")
	}
	b.done(stuck)
	if got := granted(large, small); len(got) != 2 {
		t.Errorf("%v were let in, both fit now", got)
	}
}

func TestTenantsThatWaitAreServedInTurn(t *testing.T) {
	b := newBench(AdmissionLimits{SlotsPerTenant: 4, Slots: 4, BytesPerTenant: 1 << 20, Bytes: 1 << 20})
	var holder TenantUse
	c := roomy()
	held := []*Demand{b.letIn(&holder, c, 1, 1), b.letIn(&holder, c, 1, 1), b.letIn(&holder, c, 1, 1), b.letIn(&holder, c, 1, 1)}
	var many, one TenantUse
	line := []*Demand{b.wait(&many, c, 2, 1), b.wait(&many, c, 2, 1), b.wait(&many, c, 2, 1), b.wait(&one, c, 3, 1)}
	b.done(held[0])
	b.done(held[1])
	if got := granted(line...); !slices.Equal(got, []int{0, 3}) {
		t.Errorf("%v were let in, want one of each tenant", got)
	}
}

func TestEachOutcomeOfAShardWakesOneThatWaitsForRoomThere(t *testing.T) {
	b := newBench(AdmissionLimits{SlotsPerTenant: 100, Slots: 100, BytesPerTenant: 1 << 20, Bytes: 1 << 20})
	var u TenantUse
	c := roomy()
	held := []*Demand{b.letIn(&u, c, 1, 1), b.letIn(&u, c, 1, 1), b.letIn(&u, c, 2, 1)}
	one, two, three := b.demand(&u, c, 1, 1), b.demand(&u, c, 1, 1), b.demand(&u, c, 1, 1)
	if !b.a.AwaitRoom(one) || b.a.AwaitRoom(two) || b.a.AwaitRoom(three) {
		t.Error("the first in line tries once more, and nobody else")
	}
	if b.a.Admit(b.demand(&u, c, 1, 1)) != ShardFull || b.a.Admit(b.demand(&u, c, 2, 1)) != LetIn {
		t.Error("those who come later pass those who wait for the shard, or are kept from another")
	}
	b.done(held[2]) // another shard
	b.done(held[0])
	if !b.a.TakeRung(one) || b.a.TakeRung(two) || b.a.TakeRung(one) {
		t.Error("one outcome wakes one")
	}
	b.done(held[1])
	if b.rings[one] != 2 || b.rings[two] != 0 {
		t.Error("the first had not got room, and is still the first")
	}
	b.a.LeaveRoom(one) // rung, and gives up
	if !b.a.TakeRung(two) || b.a.TakeRung(three) {
		t.Error("what one was woken for goes to the next")
	}
	four := b.demand(&u, c, 1, 1)
	b.a.AwaitRoom(four)
	b.a.Reached(two)
	if b.a.TakeRung(three) {
		t.Error("who got room woke another one")
	}
	b.done(b.letIn(&u, c, 2, 1))
	b.a.ringForRoom(1, 1) // an outcome while the third tries: maybe that of its own request
	b.a.Reached(three)
	if !b.a.TakeRung(four) {
		t.Error("an outcome that came while one tried woke nobody")
	}
	b.a.LeaveRoom(four)
	if len(b.a.full) != 0 {
		t.Error("a line without anybody is kept")
	}
}

// Requests come, wait, give up and end in any order: no bound is exceeded, nobody who fits is left waiting, nobody overtakes in a line,
// and at the end nothing is held.
func TestLinesKeepTheirOrderAndLoseNobody(t *testing.T) {
	limits := AdmissionLimits{SlotsPerTenant: 2, Slots: 6, BytesPerTenant: 20, Bytes: 60}
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(limits)
		tenants := []*TenantUse{{}, {}, {}}
		conns := []*ConnUse{NewConnUse(30), NewConnUse(30), NewConnUse(30)}
		var under, waiting []*Demand
		settle := func() { // those who were let in reach their shard
			waiting = slices.DeleteFunc(waiting, func(d *Demand) bool {
				if d.Granted() {
					b.a.Reached(d)
					under = append(under, d)
					return true
				}
				return false
			})
		}
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				n := rapid.IntRange(0, 2).Draw(t, "tenant") // one connection each
				d := b.demand(tenants[n], conns[n], id.ShardID(rapid.IntRange(1, 3).Draw(t, "shard")), rapid.IntRange(1, 20).Draw(t, "bytes"))
				if b.a.Admit(d) == LetIn {
					under = append(under, d)
				} else {
					waiting = append(waiting, d)
					b.a.Wait(d)
				}
				settle()
			},
			"end": func(t *rapid.T) {
				if len(under) > 0 {
					i := rapid.IntRange(0, len(under)-1).Draw(t, "which")
					b.done(under[i])
					under = slices.Delete(under, i, i+1)
					settle()
				}
			},
			"give up": func(t *rapid.T) {
				if len(waiting) > 0 {
					i := rapid.IntRange(0, len(waiting)-1).Draw(t, "which")
					b.a.GiveUp(waiting[i])
					waiting = slices.Delete(waiting, i, i+1)
					settle()
				}
			},
			"": func(t *rapid.T) {
				slots, bytes := 0, 0
				for _, d := range under {
					slots++
					bytes += d.Bytes
				}
				if s, by := b.a.InUse(); s != slots || by != bytes || s > limits.Slots {
					t.Fatalf("%d slots and %d bytes in use, want %d and %d", s, by, slots, bytes)
				}
				checkLines(t, b.a, waiting, under)
			},
		})
		for len(under)+len(waiting) > 0 {
			if len(under) == 0 {
				t.Fatalf("%d wait for ever", len(waiting))
			}
			b.done(under[0])
			under = under[1:]
			settle()
		}
		for i := range conns {
			if len(conns[i].shards) != 0 || !tenants[i].Idle() {
				t.Fatalf("connection %d keeps %d shards", i, len(conns[i].shards))
			}
		}
		if len(b.a.waiting) != 0 {
			t.Fatal("a tenant without a line has a turn")
		}
	})
}

// checkLines says what an obviously right judge says: who is first among those of its line, in the order of their coming, does not fit.
func checkLines(t *rapid.T, a *Admission, waiting, under []*Demand) {
	inHalf := func(c *ConnUse, shard id.ShardID) (n, bytes int) {
		for _, d := range under {
			if d.Conn == c && d.Shard == shard {
				n, bytes = n+1, bytes+d.Bytes
			}
		}
		for _, d := range waiting {
			if d.Conn == c && d.Shard == shard && d.inLine.of == &d.Tenant.line {
				n, bytes = n+1, bytes+d.Bytes
			}
		}
		return n, bytes
	}
	seen := map[any]bool{}
	for _, d := range waiting {
		if d.inLine.of == nil {
			t.Fatal("one that waits stands in no line")
		}
		if d.inLine.of != &d.Tenant.line {
			key := [2]any{d.Conn, d.Shard}
			if n, bytes := inHalf(d.Conn, d.Shard); !seen[key] && (n == 0 || bytes+d.Bytes <= 15) {
				t.Fatalf("a request of %d bytes waits for its shard's half, of which %d are used", d.Bytes, bytes)
			}
			seen[key] = true
		}
	}
	for _, u := range a.waiting {
		if d := u.line.first(); a.fits(u, d.Bytes) {
			t.Fatalf("a request of %d bytes waits for the node, which has %d slots and %d bytes in use", d.Bytes, a.slots, a.bytes)
		}
	}
}
