package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
)

func client4(n uint32) *net.UDPAddr {
	return &net.UDPAddr{IP: binary.BigEndian.AppendUint32(nil, 0x0a000000+n), Port: 4000}
}

func TestAdmissionStaysWithinItsLimitsAndKeepsNoTraceOfThoseWhoLeft(t *testing.T) {
	a := newAdmission(100, 10)
	var places []*place
	reasons := map[string]int{}
	for n := range uint32(10_000) {
		p, err := a.enter(client4(n % 50))
		var refused *RefusedError
		switch {
		case err == nil:
			places = append(places, p)
		case errors.As(err, &refused):
			reasons[refused.Reason]++
		default:
			t.Fatal(err)
		}
	}
	if len(places) != 100 || reasons[RefusedLimit] != 9_900 {
		t.Fatalf("%d places, refusals %v", len(places), reasons)
	}
	for i, p := range places {
		if i%2 == 0 {
			p.accept()
			p.accept()
		}
		if accepted := p.leave(); accepted != (i%2 == 0) {
			t.Errorf("place %d: accepted %v", i, accepted)
		}
		p.accept() // too late: changes nothing
	}
	if now := a.now(); now != (load{}) || len(a.byAddr) != 0 {
		t.Errorf("left over: %+v and %d addresses", now, len(a.byAddr))
	}
}

func TestUnfinishedHandshakesMakeNewClientsProveTheirAddress(t *testing.T) {
	a := newAdmission(80, 16)
	victim, other := client4(1), client4(2)
	first, err := a.enter(victim)
	if err != nil {
		t.Fatal(err)
	}
	if a.suspicious(victim) {
		t.Error("one handshake is suspicious already")
	}
	if _, err := a.enter(victim); err != nil { // 2 of 16: one in eight
		t.Fatal(err)
	}
	if !a.suspicious(victim) || a.suspicious(other) {
		t.Error("the share of one address does not count for it alone")
	}
	first.accept()
	if a.suspicious(victim) {
		t.Error("a finished handshake still counts")
	}
	for n := range uint32(9) {
		if _, err := a.enter(client4(10 + n)); err != nil {
			t.Fatal(err)
		}
	}
	if !a.suspicious(other) { // 10 of 80 in all
		t.Error("many handshakes in all are not suspicious")
	}
}

func TestGivingAPlaceBackTwicePanics(t *testing.T) {
	a := newAdmission(1, 1)
	p, err := a.enter(client4(1))
	if err != nil {
		t.Fatal(err)
	}
	if placeOf(remember(context.Background(), p)) != p {
		t.Error("the place got lost in its context")
	}
	p.leave()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	p.leave()
}
