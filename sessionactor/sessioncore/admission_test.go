package sessioncore

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/wire/id"
)

// roomy is a connection that is never in the way.
func roomy() *ConnUse { return NewConnUse(1 << 40) }

func admitN(a *Admission, u *TenantUse, n, bytes int) (admitted int) {
	c := roomy()
	for range n {
		if a.Admit(&Demand{Tenant: u, Conn: c, Shard: 1, Bytes: bytes}) == LetIn {
			admitted++
		}
	}
	return admitted
}

// mission 213: one tenant fills what it may, and another still gets its 512.
func TestANoisyTenantLeavesAnotherItsGuaranteedSlots(t *testing.T) {
	a := NewAdmission(DefaultAdmission(4, 64<<20))
	var noisy, quiet TenantUse
	c := roomy()
	got := 0
	for a.Admit(&Demand{Tenant: &noisy, Conn: c, Shard: 1, Bytes: 1}) == LetIn {
		got++
	}
	if got != 2048-512 {
		t.Fatalf("the noisy tenant got %d slots, want all but the share that is never lent", got)
	}
	if got := admitN(a, &quiet, 5000, 1); got != 512 {
		t.Fatalf("the other tenant got %d slots, want its 512", got)
	}
	a.Done(&noisy, c, 1, 1, 1)
	if a.Admit(&Demand{Tenant: &noisy, Conn: c, Shard: 1, Bytes: 1}) != NoRoom {
		t.Fatal("a slot was lent although only the last share is free")
	}
}

// mission 214: bytes are a bound of their own.
func TestBytesAreAnIndependentBound(t *testing.T) {
	a := NewAdmission(DefaultAdmission(4, 64<<20))
	var one, two TenantUse
	if got := admitN(a, &one, 1000, 1<<20); got != 48 {
		t.Fatalf("%d MiB admitted for one tenant, want 48", got)
	}
	if got := admitN(a, &two, 1000, 1<<20); got != 16 {
		t.Fatalf("%d MiB admitted for the other, want 16", got)
	}
	if _, bytes := a.InUse(); bytes != 64<<20 {
		t.Fatalf("%d bytes in use", bytes)
	}
}

func TestARequestLargerThanEveryBoundPassesAlone(t *testing.T) {
	a := NewAdmission(AdmissionLimits{SlotsPerTenant: 2, Slots: 8, BytesPerTenant: 10, Bytes: 40})
	var u TenantUse
	c := NewConnUse(10)
	if a.Admit(&Demand{Tenant: &u, Conn: c, Shard: 1, Bytes: 1000}) != LetIn || admitN(a, &u, 1, 1) != 0 {
		t.Fatal("the large one must pass, and nothing beside it")
	}
	a.Done(&u, c, 1, 1, 1000)
	if !u.Idle() || admitN(a, &u, 1, 1) != 1 {
		t.Fatal("nothing is under way any more")
	}
}

// decision 37, field case STR-03: a shard that is stuck has half of its connection's permits, and no more.
func TestOneShardHasAtMostHalfOfItsConnection(t *testing.T) {
	a := NewAdmission(AdmissionLimits{SlotsPerTenant: 1000, Slots: 1000, BytesPerTenant: 1 << 30, Bytes: 1 << 30})
	var u TenantUse
	c, other := NewConnUse(100), NewConnUse(100)
	ask := func(c *ConnUse, shard id.ShardID, bytes int) Verdict {
		return a.Admit(&Demand{Tenant: &u, Conn: c, Shard: shard, Bytes: bytes})
	}
	for range 5 {
		if v := ask(c, 1, 10); v != LetIn {
			t.Fatalf("within its half: %d", v)
		}
	}
	if ask(c, 1, 1) != OverHalf {
		t.Error("a shard got more than half")
	}
	if ask(c, 2, 50) != LetIn || ask(c, 3, 60) != LetIn || ask(other, 1, 50) != LetIn {
		t.Error("another shard, or the same on another connection, was refused")
	}
	if ask(c, 3, 1) != OverHalf {
		t.Error("something was let in beside a request that is larger than the half")
	}
	a.Done(&u, c, 1, 2, 20)
	if ask(c, 1, 21) != OverHalf || ask(c, 1, 20) != LetIn {
		t.Error("what came free is not what may be taken")
	}
	a.Done(&u, c, 2, 1, 50)
	a.Done(&u, c, 1, 4, 50)
	if len(c.shards) != 1 {
		t.Errorf("%d shards are remembered, one has something under way", len(c.shards))
	}
}

func TestAdmissionKeepsItsBoundsAndItsPromise(t *testing.T) {
	limits := AdmissionLimits{SlotsPerTenant: 3, Slots: 12, BytesPerTenant: 30, Bytes: 120}
	rapid.Check(t, func(t *rapid.T) {
		a, c := NewAdmission(limits), roomy()
		var users [5]TenantUse
		var held [5][]int
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(t *rapid.T) {
				i, bytes := rapid.IntRange(0, 4).Draw(t, "tenant"), rapid.IntRange(0, 12).Draw(t, "bytes")
				idleOthers := a.slots-users[i].slots == 0
				ok := a.Admit(&Demand{Tenant: &users[i], Conn: c, Shard: 1, Bytes: bytes}) == LetIn
				if ok {
					held[i] = append(held[i], bytes)
				}
				if !ok && len(held[i]) == 0 && idleOthers {
					t.Fatal("refused on an empty node")
				}
			},
			"done": func(t *rapid.T) {
				i := rapid.IntRange(0, 4).Draw(t, "tenant")
				if n := len(held[i]); n > 0 {
					a.Done(&users[i], c, 1, 1, held[i][n-1])
					held[i] = held[i][:n-1]
				}
			},
			"": func(t *rapid.T) {
				slots, bytes := 0, 0
				for i := range users {
					slots += len(held[i])
					for _, b := range held[i] {
						bytes += b
					}
					if users[i].slots > limits.Slots-limits.SlotsPerTenant && users[i].slots > limits.SlotsPerTenant {
						t.Fatalf("tenant %d has %d slots: the last share was lent", i, users[i].slots)
					}
				}
				if s, b := a.InUse(); s != slots || b != bytes || s > limits.Slots {
					t.Fatalf("%d slots and %d bytes in use, want %d and %d", s, b, slots, bytes)
				}
			},
		})
	})
}

func TestAnEndThatWasNeverABeginningPanics(t *testing.T) {
	for name, end := range map[string]func(a *Admission, u *TenantUse, c *ConnUse){
		"of a tenant": func(a *Admission, u *TenantUse, c *ConnUse) { a.Done(&TenantUse{}, c, 1, 1, 0) },
		"of a shard":  func(a *Admission, u *TenantUse, c *ConnUse) { a.Done(u, c, 2, 1, 1) },
		"of bytes":    func(a *Admission, u *TenantUse, c *ConnUse) { a.Done(u, c, 1, 1, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Fatal("no panic")
				}
			}()
			a, u, c := NewAdmission(DefaultAdmission(1, 100)), &TenantUse{}, roomy()
			a.Admit(&Demand{Tenant: u, Conn: c, Shard: 1, Bytes: 1})
			end(a, u, c)
		})
	}
}
