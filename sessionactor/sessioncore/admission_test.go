package sessioncore

import (
	"testing"

	"pgregory.net/rapid"
)

func admitN(a *Admission, u *TenantUse, n, bytes int) (admitted int) {
	for range n {
		if a.Admit(u, bytes) {
			admitted++
		}
	}
	return admitted
}

// mission 213: one tenant fills what it may, and another still gets its 512.
func TestANoisyTenantLeavesAnotherItsGuaranteedSlots(t *testing.T) {
	a := NewAdmission(DefaultAdmission(4, 64<<20))
	var noisy, quiet TenantUse
	if got := admitN(a, &noisy, 5000, 1); got != 2048-512 {
		t.Fatalf("the noisy tenant got %d slots, want all but the share that is never lent", got)
	}
	if got := admitN(a, &quiet, 5000, 1); got != 512 {
		t.Fatalf("the other tenant got %d slots, want its 512", got)
	}
	a.Done(&noisy, 1, 1)
	if a.Admit(&noisy, 1) {
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
	if !a.Admit(&u, 1000) || a.Admit(&u, 1) {
		t.Fatal("the large one must pass, and nothing beside it")
	}
	a.Done(&u, 1, 1000)
	if !u.Idle() || !a.Admit(&u, 1) {
		t.Fatal("nothing is under way any more")
	}
}

func TestAdmissionKeepsItsBoundsAndItsPromise(t *testing.T) {
	limits := AdmissionLimits{SlotsPerTenant: 3, Slots: 12, BytesPerTenant: 30, Bytes: 120}
	rapid.Check(t, func(t *rapid.T) {
		a := NewAdmission(limits)
		var users [5]TenantUse
		var held [5][]int
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(t *rapid.T) {
				i, bytes := rapid.IntRange(0, 4).Draw(t, "tenant"), rapid.IntRange(0, 12).Draw(t, "bytes")
				idleOthers := a.slots-users[i].slots == 0
				ok := a.Admit(&users[i], bytes)
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
					a.Done(&users[i], 1, held[i][n-1])
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
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	NewAdmission(DefaultAdmission(1, 100)).Done(&TenantUse{}, 1, 0)
}
