package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// client is one client process with one connection. Its coroutines are of the class Outside.
type client struct {
	run         *run
	name        string
	number      uint64
	to          *broker
	tenant      string
	offer       func(*wire.Auth)
	conditional bool // it has offered to know conditional cache writes
	link        *link
	talks       []*talk
	subs        map[uint64]*subscription // by the broker's id; never iterated
	order       []*subscription
	next        uint64        // number of the next stream
	orphans     int           // event streams that were broken off before they said whose they were
	waiting     []*simrt.Gate // of event streams whose grant has not come yet
}

// newClient connects to a node and reads the event streams that it is sent.
func (r *run) newClient(to *broker, tenant string, places int) *client {
	c := r.connect(to, tenant, places)
	c.launch("events", c.acceptEvents)
	return c
}

// connect connects to a node and reads no event stream.
func (r *run) connect(to *broker, tenant string, places int) *client {
	r.clients++
	c := &client{run: r, name: fmt.Sprintf("c%d", r.clients), number: uint64(r.clients), to: to, tenant: tenant, subs: map[uint64]*subscription{}}
	offer := r.world.Rand().IntN(len(offers))
	c.offer, c.conditional = offers[offer], offer < offersToday
	c.link = r.net.dial(c.name, to, r.clock, places)
	r.all = append(r.all, c)
	return c
}

// launch starts a coroutine of the client that does not count as work to be finished.
func (c *client) launch(what string, run func()) { c.run.world.Go(simrt.Outside, c.name+" "+what, run) }

// work starts a coroutine of the client that must end before the run is over.
func (c *client) work(what string, run func()) {
	c.run.busy++
	c.launch(what, func() {
		run()
		c.run.busy--
	})
}

// offers are the ways in which a client may negotiate.
var offers = []func(*wire.Auth){offerToday, offerToday, offerNothing, offerJSON, offerOld}

// offersToday is how many of offers, from the first on, are offerToday.
const offersToday = 2

// offerToday is everything the reference client offers.
func offerToday(a *wire.Auth) {
	a.ClientFlags, a.ClientFeatures, a.ClientFeaturesHi = wire.Some(wire.Flags(8191)), wire.Some(wire.Features(4218945535)), wire.Some(uint32(15))
}

// offerNothing is a client from before negotiation.
func offerNothing(*wire.Auth) {}

// offerJSON reads codes but no binary frame.
func offerJSON(a *wire.Auth) {
	a.ClientFlags, a.ClientFeatures = wire.Some(wire.Flags(0)), wire.Some(wire.FeatureErrorCodes|wire.FeatureUnsupported)
}

// offerOld reads events of one subscription, with timestamps.
func offerOld(a *wire.Auth) {
	a.ClientFlags = wire.Some(wire.FlagPublishBatch | wire.FlagPublishAcked | wire.FlagEventBatch | wire.FlagEventTimestamps)
	a.ClientFeatures = wire.Some(wire.FeatureErrorCodes)
}

// ms is the time on the clock of the client's node, in Unix milliseconds.
func (c *client) ms() int64 { return c.to.clock.Now().UnixMilli() }

// sleep gives way for d of true time; false when the world ends.
func (c *client) sleep(d time.Duration) bool {
	g := c.run.world.NewGate()
	t := c.run.clock.AfterFunc(d, g.Ring)
	c.run.asleep++
	defer func() { t.Stop(); c.run.asleep-- }()
	return g.Wait()
}

// gone reports whether the connection has ended for the client.
func (c *client) gone() bool { return c.link.client.ctx.Err() != nil }

// recordID numbers the records of a client stream, from 1.
func recordID(client, stream, n uint64) uint64 { return client<<40 | stream<<24 | n }

// payload is the record with that id: the id, and bytes that follow from it.
func payload(id uint64, size int) []byte {
	p := make([]byte, max(size, 8))
	for i := range 8 {
		p[i] = byte(id >> (56 - 8*i))
	}
	for i := 8; i < len(p); i++ {
		p[i] = byte(id) + byte(i)
	}
	return p
}

// isPayload reports whether p is a record of payload, and which.
func isPayload(p []byte) (id uint64, ok bool) {
	if len(p) < 8 {
		return 0, false
	}
	for i := range 8 {
		id = id<<8 | uint64(p[i])
	}
	for i := 8; i < len(p); i++ {
		if p[i] != byte(id)+byte(i) {
			return id, false
		}
	}
	return id, true
}

// gatekeeper takes tokens of the form "good <tenant>", and "read <tenant>" for a principal that may not write.
type gatekeeper struct{}

func (gatekeeper) Authenticate(tenant, token string, _ time.Time) (sessioncore.Grants, *wire.Refusal) {
	may, of, ok := strings.Cut(token, " ")
	if ok && of == tenant && (may == "good" || may == "read") {
		return rights{tenant, may == "good"}, nil
	}
	f := wire.Refuse(wire.CodeUnauthenticated, "unauthorized: the token was not accepted")
	return nil, &f
}

// rights are what a token allows.
type rights struct {
	tenant string
	write  bool
}

func (r rights) Tenant() string  { return r.tenant }
func (r rights) Subject() string { return "sim" }

func (r rights) Allows(a sessioncore.Action, _ sessioncore.Object) bool {
	return r.write || a == sessioncore.ActionSubscribe || a == sessioncore.ActionCacheRead
}
