package sessionactor

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

// identity is who asks for a subscription: one connection may carry several.
type identity struct{ tenant, subject string }

// places counts the subscriptions of one connection. It belongs to its Session.
type places struct {
	perIdentity, total int
	of                 map[identity]int
	holder             map[string]identity // by the name of the subscription's actor
}

func newPlaces(d *Delivery) places {
	return places{perIdentity: d.PerIdentity, total: d.PerConnection, of: map[identity]int{}, holder: map[string]identity{}}
}

// refusal says why who gets no further place, nil if there is one.
func (p *places) refusal(who identity) *wire.Refusal {
	var f wire.Refusal
	switch {
	case len(p.holder) >= p.total:
		f = wire.Refuse(wire.CodeLimitExceeded, fmt.Sprintf("the connection has %d subscriptions already; open another connection", len(p.holder)))
	case p.of[who] >= p.perIdentity:
		f = wire.Refuse(wire.CodeLimitExceeded, fmt.Sprintf("%s has %d subscriptions on this connection already; open another connection", who.subject, p.of[who]))
	default:
		return nil
	}
	return &f
}

func (p *places) take(name string, who identity) {
	p.holder[name] = who
	p.of[who]++
}

// give frees the place of a subscription that has ended.
func (p *places) give(name string) {
	who, ok := p.holder[name]
	if !ok {
		return
	}
	delete(p.holder, name)
	if p.of[who]--; p.of[who] == 0 {
		delete(p.of, who)
	}
}

func (p *places) used() int { return len(p.holder) }
