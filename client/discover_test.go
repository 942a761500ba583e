package client

import (
	"slices"
	"testing"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

func TestClientWithOneAddressFindsTheOtherBrokersAndUsesThemLater(t *testing.T) {
	noLeaks(t)
	first := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	second := testbroker.New(t, testbroker.Options{Share: first})
	told := make(chan struct{}, 1)
	seed := testbroker.New(t, testbroker.Options{Share: first, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, ok := f.Message().(*wire.Topology); !ok {
			return false
		}
		s.Send(&wire.TopologyView{Brokers: []wire.Broker{{NodeID: "2", Addr: second.Addr()}, {NodeID: "self", Addr: s.Broker.Addr()}}})
		told <- struct{}{}
		return true
	}})
	c := connect(t, seed, func(o *Options) { o.NoDiscovery = false })
	await(t, "topology", told)
	ctx := within(t)
	until(t, "arrival of the answer", func() bool { addrs, _ := c.seeds.list(); return slices.Contains(addrs, second.Addr()) })
	if addrs, _ := c.seeds.list(); len(addrs) != 2 {
		t.Fatalf("the seed is there twice: %v", addrs)
	}
	l := c.life.open()[0]
	if err := seed.Stop(); err != nil {
		t.Fatal(err)
	}
	await(t, "end of the connection", l.conn.Context().Done())
	pastTheDead(t, c, func() error { _, err := c.Publish(ctx, "ns", "s", []byte("x")); return err })
	if second.Connections() == 0 {
		t.Fatal("nobody came to the broker that was named")
	}
}

func TestConfiguredAddressesStayAndLearnedOnesAreBounded(t *testing.T) {
	s := seeds{configured: []string{"a:1", "b:1"}}
	many := []string{"", "b:1", "c:1", "c:1"}
	for i := range 3 * learnedMax {
		many = append(many, string(rune('A'+i))+":1")
	}
	s.learn(many)
	addrs, _ := s.list()
	if len(addrs) != 2+learnedMax || addrs[0] != "a:1" || addrs[1] != "b:1" || addrs[2] != "c:1" || addrs[3] == "c:1" {
		t.Fatalf("%d addresses: %v", len(addrs), addrs)
	}
	s.prefer("c:1")
	if _, first := s.list(); first != 2 {
		t.Fatalf("first is %d", first)
	}
	s.learn(nil)
	if addrs, first := s.list(); len(addrs) != 2 || first > 1 {
		t.Fatalf("%v, first %d", addrs, first)
	}
}
