package sessioncore

import (
	"math/rand/v2"
	"testing"

	"github.com/felixd/felixd/wire"
)

var testParked = Parked{Name: "polls", Reason: "full"}

func TestAConnectionHasItsBoundOfPollsAndATenantItsShareWhateverOthersDo(t *testing.T) {
	p := NewParking(testParked, ParkLimits{Conn: 6, Tenant: 4, Node: 16})
	var greedy, late ParkUse
	conns := make([]ParkUse, 4)
	full := func(c, tenant *ParkUse, most int) (n int) {
		t.Helper()
		for ; n < most; n++ {
			f := p.Take(c, tenant, 1)
			if f == nil {
				continue
			}
			if f.Code != wire.CodeOverloaded || f.Retry != wire.RetryAfter || f.RetryAfterMS == 0 || f.Reason == "" || f.Message == "" {
				t.Errorf("refused %+v", f)
			}
			break
		}
		return n
	}
	for i, want := range []int{6, 6, 0} { // of the last share nothing is lent
		if n := full(&conns[i], &greedy, 100); n != want {
			t.Errorf("connection %d has %d, want %d", i, n, want)
		}
	}
	if n := full(&conns[3], &late, 100); n != 4 {
		t.Errorf("a tenant that comes late has %d of a share of 4", n)
	}
	p.Give(&conns[3], &late, 1)
	if n := full(&conns[2], &greedy, 100); n != 0 {
		t.Errorf("%d of what another tenant may always have were lent", n)
	}
	if n := full(&conns[3], &late, 100); n != 1 {
		t.Errorf("%d were taken of one that was free", n)
	}
	for i, tenant := range []*ParkUse{&greedy, &greedy, &greedy, &late} {
		p.Give(&conns[i], tenant, conns[i].bytes)
	}
	if !greedy.Idle() || !late.Idle() || p.Used() != 0 {
		t.Errorf("%d are held, by tenants %d and %d", p.Used(), greedy.bytes, late.bytes)
	}
}

// Whatever comes and goes, no bound is ever exceeded, the sums agree, and a tenant inside its share is refused only where its connection is full
// or others have theirs.
func TestPollsStayWithinAllTheirBounds(t *testing.T) {
	l := ParkLimits{Conn: 50, Tenant: 40, Node: 200}
	p := NewParking(testParked, l)
	r := rand.New(rand.NewPCG(3, 5))
	var conns [12]ParkUse
	var tenants [4]ParkUse
	type taken struct{ conn, tenant, bytes int }
	var list []taken
	for range 20_000 {
		if len(list) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(list))
			x := list[i]
			list[i] = list[len(list)-1]
			list = list[:len(list)-1]
			p.Give(&conns[x.conn], &tenants[x.tenant], x.bytes)
		} else {
			c := r.IntN(len(conns))
			x := taken{c, c % len(tenants), 1 + r.IntN(9)}
			before := tenants[x.tenant].bytes
			if f := p.Take(&conns[x.conn], &tenants[x.tenant], x.bytes); f == nil {
				list = append(list, x)
			} else if conns[x.conn].bytes+x.bytes <= l.Conn && before+x.bytes <= l.Tenant && p.Used()+x.bytes <= l.Node {
				t.Fatalf("refused inside its share: %+v", x)
			}
		}
		sum := 0
		for i := range tenants {
			sum += tenants[i].bytes
		}
		for i := range conns {
			if conns[i].bytes > l.Conn {
				t.Fatalf("connection %d holds %d", i, conns[i].bytes)
			}
		}
		if sum != p.Used() || p.Used() > l.Node {
			t.Fatalf("%d are held, the tenants have %d", p.Used(), sum)
		}
	}
}

func TestLimitsOfPollsThatContradictEachOtherAreABug(t *testing.T) {
	for _, l := range []ParkLimits{{}, {Conn: 1, Tenant: 1}, {Conn: 1, Node: 1}, {Tenant: 1, Node: 1}, {Conn: 1, Tenant: 2, Node: 1}} {
		if !panics(func() { NewParking(testParked, l) }) {
			t.Errorf("%+v was taken", l)
		}
	}
	if p := NewParking(testParked, DefaultPolls()); !panics(func() { p.Give(&ParkUse{}, &ParkUse{}, 1) }) {
		t.Error("more was given back than was held")
	}
}

// Ten connections of one tenant with a thousand polls each fit the defaults, with the longest names that there are.
func TestAThousandPollsOnEachOfTenConnectionsFitTheDefaults(t *testing.T) {
	p, tenant := NewParking(testParked, DefaultPolls()), ParkUse{}
	for range 10 {
		conn := ParkUse{}
		for range 1000 {
			if f := p.Take(&conn, &tenant, 4<<10); f != nil {
				t.Fatalf("after %d bytes: %+v", p.Used(), f)
			}
		}
	}
}
