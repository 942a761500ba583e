package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/storage/vfs"
)

const (
	historyKeys        = 5
	historyClients     = 12 // and at least 8 of them in a round
	historyConnections = 6  // that they share
	historyOps         = 24 // of each client in a round
)

// campaign are rounds of concurrent clients, each round on keys of its own.
type campaign struct {
	t       *testing.T
	site    *site
	broker  *broker
	clients []*client.Client
	began   time.Time
	rnd     *rand.Rand

	round    int
	values   atomic.Int64 // written in this round
	finished atomic.Int64 // requests of this round

	unknown, refused atomic.Int64

	mu        sync.Mutex
	histories [2 * historyKeys][]porcupine.Operation // of the values, then of the counters
}

// Clients read, write, remove, write under conditions and count, all at once and on few keys, while the broker is killed, cut off from power,
// and its disk fails. The history of every key has an order that explains each answer; requests of unknown outcome may have been done at any
// time after they began, or never. What a round left is what later ones find, after more crashes and compactions.
//
// field case CAC-11 (one broker); matrix G1, G2, G3, G19, G20, G21, H1
func TestCAC11_EveryHistoryOfAKeyIsLinearizable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &campaign{t: t, site: newSite(t, 2), began: time.Now(), rnd: rand.New(rand.NewPCG(seed, 1))}
	c.site.disk = func(o *shardactor.DiskOptions) { o.InlineBytes = 64 } // half of the values are read from the log
	c.broker = c.site.start(vfs.NewMem())
	for range historyConnections {
		c.clients = append(c.clients, c.site.connect())
	}
	var last []string
	rounds := testkit.Size("cache_histories")
	for c.round = range rounds {
		c.play()
		last = append(last, c.state())
		if t.Failed() {
			t.Fatalf("round %d of seed %d", c.round, seed)
		}
	}
	for c.round = range rounds {
		if got := c.state(); got != last[c.round] {
			t.Errorf("round %d left %s; later there was %s", c.round, last[c.round], got)
		}
	}
	t.Logf("%d rounds of %d keys in %v: %d requests of unknown outcome, %d refused", rounds, historyKeys, time.Since(c.began), c.unknown.Load(), c.refused.Load())
	if c.unknown.Load() == 0 {
		t.Error("it proves little: nobody was left without an answer")
	}
}

// play is one round.
func (c *campaign) play() {
	c.values.Store(0)
	c.finished.Store(0)
	c.histories = [2 * historyKeys][]porcupine.Operation{}
	var all sync.WaitGroup
	playing := 8 + c.rnd.IntN(historyClients-7)
	for n := range playing {
		rnd := rand.New(rand.NewPCG(c.rnd.Uint64(), uint64(n)))
		all.Go(func() { newPlayer(c, n, rnd).play(historyOps) })
	}
	c.interrupt(int64(playing * historyOps))
	all.Wait()
	p := newPlayer(c, historyClients, c.rnd)
	for k := range historyKeys {
		p.run(k, asked{kind: get})
		p.run(historyKeys+k, asked{kind: sum})
	}
	for n, h := range c.histories {
		if wrong := judge(h); wrong != "" {
			c.t.Errorf("%s: %s", c.name(n), wrong)
			for _, o := range h {
				c.t.Logf("%d %d..%d %+v -> %+v", o.ClientId, o.Call, o.Return, o.Input, o.Output)
			}
		}
	}
}

// name is the key of a history.
func (c *campaign) name(history int) string { return fmt.Sprint(c.round, "/", history%historyKeys) }

// state is what the keys of the round hold.
func (c *campaign) state() string {
	ctx, cancel := testkit.Within()
	defer cancel()
	var b strings.Builder
	for k := range historyKeys {
		e, err := c.clients[0].CacheGetVersion(ctx, namespace, users, c.name(k))
		n, counted, err2 := c.clients[0].CounterGet(ctx, namespace, users, c.name(k))
		if err := errors.Join(err, err2); err != nil {
			c.t.Fatal(err)
		}
		fmt.Fprintf(&b, "[%v %.20s %d; %v %d]", e.Found, e.Value, e.Version, counted, n)
	}
	return b.String()
}

// interrupt does to the broker what happens to one, at a random moment of a round of so many requests.
func (c *campaign) interrupt(requests int64) {
	var rules []vfs.Rule
	if c.rnd.IntN(2) == 0 { // so that many writes wait for one sync
		rules = append(rules, vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Delay: time.Duration(1+c.rnd.IntN(3)) * time.Millisecond})
	}
	c.broker.fault.Set(rules)
	at := requests/8 + c.rnd.Int64N(requests/2)
	testkit.Eventually(c.t, "requests are answered", func() bool { return c.finished.Load() >= at })
	leave := leaves(c.rnd)
	switch c.rnd.IntN(5) {
	case 0: // the writes of the disk fail for a while
		rule := c.broker.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: "*.log", Times: 1 + c.rnd.IntN(3), Short: c.rnd.IntN(2) == 0, Err: syscall.ENOSPC})
		testkit.After(time.Duration(c.rnd.IntN(20)) * time.Millisecond)
		rule.Remove()
		return
	case 1: // a sync fails, and the broker is restarted
		c.broker.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Times: 1, Err: syscall.EIO, Late: c.rnd.IntN(2) == 0})
		testkit.After(time.Duration(c.rnd.IntN(20)) * time.Millisecond)
		if c.rnd.IntN(2) == 0 {
			leave = (*vfs.Mem).Clone
		}
	case 2, 3:
		leave = (*vfs.Mem).Clone
	}
	c.broker = c.site.start(c.broker.crash(leave))
}

// player is one client of a round.
type player struct {
	*campaign
	id     int
	client *client.Client
	rnd    *rand.Rand
	seen   [historyKeys]struct { // the newest version that it was told of each key, and the value of that
		version uint64
		value   int
	}
}

func newPlayer(c *campaign, id int, rnd *rand.Rand) *player {
	return &player{campaign: c, id: id, client: c.clients[id%len(c.clients)], rnd: rnd}
}

func (p *player) play(requests int) {
	for range requests {
		p.run(p.choose())
		p.finished.Add(1)
	}
}

// choose is the next request, and the number of its history.
func (p *player) choose() (history int, in asked) {
	k := p.rnd.IntN(historyKeys)
	in = asked{expects: -1}
	in.kind = []kind{get, get, get, put, put, remove, putIfAbsent, putIfVersion, putIfVersion, removeIf, add, add, sum}[p.rnd.IntN(13)]
	switch in.kind {
	case put, putIfAbsent, putIfVersion:
		in.value = int(p.values.Add(1))
	case add:
		in.delta = p.rnd.Int64N(1000) - 300
	}
	switch in.kind {
	case putIfVersion, removeIf:
		in.version = 1 << 62
		if s := p.seen[k]; s.version != 0 && p.rnd.IntN(8) != 0 {
			in.version, in.expects = s.version, s.value
		}
	case add, sum:
		k += historyKeys
	}
	return k, in
}

// run has a request done, and notes it. One that was refused was never there: it is done again.
func (p *player) run(history int, in asked) {
	for {
		call := time.Since(p.began)
		out, err := p.ask(history, in)
		back := int64(time.Since(p.began))
		switch {
		case err == nil:
		case errors.Is(err, client.ErrOutcomeUnknown):
			p.unknown.Add(1)
			out, back = told{unknown: true}, forever
		case p.t.Context().Err() != nil || p.t.Failed():
			return
		default:
			p.refused.Add(1)
			testkit.After(time.Millisecond)
			continue
		}
		p.mu.Lock()
		p.histories[history] = append(p.histories[history], porcupine.Operation{ClientId: p.id, Input: in, Call: int64(call), Output: out, Return: back})
		p.mu.Unlock()
		return
	}
}

// ask sends a request and returns what it was answered.
func (p *player) ask(history int, in asked) (out told, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	key, c := p.name(history), p.client
	var ttl time.Duration
	if in.value%3 == 0 {
		ttl = time.Hour // an end that is far away
	}
	switch in.kind {
	case get:
		var e client.CacheEntry
		if e, err = c.CacheGetVersion(ctx, namespace, users, key); err == nil && e.Found {
			out = told{found: true, value: p.decode(e.Value), version: e.Version + 1}
			p.sees(history, out.version, out.value)
		}
	case put:
		err = c.CachePut(ctx, namespace, users, key, encode(in.value), ttl)
	case remove:
		var value []byte
		if value, out.found, err = c.CacheDelete(ctx, namespace, users, key); err == nil && out.found {
			out.value = p.decode(value)
		}
	case putIfAbsent:
		out, err = p.condition(c.CachePutIf(ctx, namespace, users, key, encode(in.value), client.IfAbsent(), ttl))
	case putIfVersion:
		out, err = p.condition(c.CachePutIf(ctx, namespace, users, key, encode(in.value), client.IfVersion(in.version-1), ttl))
	case removeIf:
		out, err = p.condition(c.CacheDeleteIf(ctx, namespace, users, key, in.version-1))
	case add:
		out.sum, err = c.CounterAdd(ctx, namespace, users, key, in.delta)
	case sum:
		out.sum, out.found, err = c.CounterGet(ctx, namespace, users, key)
	}
	if in.value != 0 && out.applied {
		p.sees(history, out.version, in.value)
	}
	return out, err
}

func (p *player) sees(history int, version uint64, value int) {
	p.seen[history].version, p.seen[history].value = version, value
}

func (p *player) condition(r client.ConditionResult, err error) (told, error) {
	out := told{applied: r.Applied}
	if r.HasVersion {
		out.version = r.Version + 1
	}
	return out, err
}

// encode is a value of a history as it is stored; two of three are too long to be kept in memory.
func encode(value int) []byte {
	return []byte(strconv.Itoa(value) + ":" + strings.Repeat("v", value%3*100))
}

func (p *player) decode(text []byte) int {
	number, _, _ := strings.Cut(string(text), ":")
	n, err := strconv.Atoi(number)
	if err != nil || string(encode(n)) != string(text) {
		p.t.Errorf("a value that nobody wrote: %.40q", text)
		return -2
	}
	return n
}

// A checker that accepts anything proves nothing: each of these histories has one answer that cannot be.
func TestAHistoryWithOneWrongAnswerIsRefused(t *testing.T) {
	at := func(call, back int64, in asked, out told) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: back, Input: in, Output: out}
	}
	one, two := asked{kind: put, value: 1}, asked{kind: put, value: 2}
	read := func(value int, version uint64) told { return told{found: value != 0, value: value, version: version} }
	lost := told{unknown: true}
	for name, c := range map[string]struct {
		list  []porcupine.Operation
		wrong func([]porcupine.Operation)
	}{
		"a replaced value is read":              {list: []porcupine.Operation{at(1, 2, one, told{}), at(3, 4, two, told{}), at(5, 6, asked{kind: get}, read(2, 9))}, wrong: func(l []porcupine.Operation) { l[2].Output = read(1, 9) }},
		"a removed value is read":               {list: []porcupine.Operation{at(1, 2, one, told{}), at(3, 4, asked{kind: remove}, read(1, 0)), at(5, 6, asked{kind: get}, told{})}, wrong: func(l []porcupine.Operation) { l[2].Output = read(1, 5) }},
		"what was lost comes back later":        {list: []porcupine.Operation{at(1, forever, one, lost), at(2, 3, asked{kind: get}, read(1, 3)), at(4, 5, asked{kind: get}, read(1, 3))}, wrong: func(l []porcupine.Operation) { l[2].Output = told{} }},
		"both of two conditional puts won":      {list: []porcupine.Operation{at(1, 9, asked{kind: putIfAbsent, value: 1}, told{applied: true, version: 3}), at(1, 9, asked{kind: putIfAbsent, value: 2}, told{version: 3})}, wrong: func(l []porcupine.Operation) { l[1].Output = told{applied: true, version: 4} }},
		"an old version was replaced":           {list: []porcupine.Operation{at(1, 2, one, told{}), at(3, 4, asked{kind: get}, read(1, 3)), at(5, 6, two, told{}), at(7, 8, asked{kind: putIfVersion, value: 3, version: 3, expects: 1}, told{version: 4})}, wrong: func(l []porcupine.Operation) { l[3].Output = told{applied: true, version: 5} }},
		"a version is that of another value":    {list: []porcupine.Operation{at(1, 2, one, told{}), at(3, 4, asked{kind: get}, read(1, 3)), at(5, 6, two, told{}), at(7, 8, asked{kind: get}, read(2, 4))}, wrong: func(l []porcupine.Operation) { l[3].Output = read(2, 3) }},
		"a version goes back":                   {list: []porcupine.Operation{at(1, 2, one, told{}), at(3, 4, asked{kind: get}, read(1, 3)), at(5, 6, two, told{}), at(7, 8, asked{kind: get}, read(2, 4))}, wrong: func(l []porcupine.Operation) { l[3].Output = read(2, 2) }},
		"an add counts twice":                   {list: []porcupine.Operation{at(1, forever, asked{kind: add, delta: 5}, lost), at(2, 3, asked{kind: add, delta: 1}, told{sum: 6}), at(4, 5, asked{kind: sum}, told{found: true, sum: 6})}, wrong: func(l []porcupine.Operation) { l[2].Output = told{found: true, sum: 11} }},
		"an acknowledged add is lost":           {list: []porcupine.Operation{at(1, 2, asked{kind: add, delta: 5}, told{sum: 5}), at(3, 4, asked{kind: sum}, told{found: true, sum: 5})}, wrong: func(l []porcupine.Operation) { l[1].Output = told{} }},
		"a conditional remove took another one": {list: []porcupine.Operation{at(1, 2, one, told{}), at(3, 4, asked{kind: get}, read(1, 3)), at(5, 6, asked{kind: removeIf, version: 3, expects: 1}, told{applied: true}), at(7, 8, asked{kind: get}, told{})}, wrong: func(l []porcupine.Operation) { l[2].Output = told{version: 3} }},
	} {
		if wrong := judge(c.list); wrong != "" {
			t.Errorf("%s: the right history is refused: %s", name, wrong)
		}
		if c.wrong(c.list); judge(c.list) == "" {
			t.Errorf("%s: it was accepted", name)
		}
	}
}
