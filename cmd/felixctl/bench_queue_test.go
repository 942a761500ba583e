package main

import (
	"strings"
	"testing"
)

func TestQueueIsMeasuredBesidePublishesToTheSameBroker(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "https://127.0.0.1:1")
	s := study(t, c.measured("queue", "orders", "--payload", "64", "--rate", "200", "--in-flight", "2"))
	var cases []string
	for _, one := range s.Reports[0].Cases {
		cases = append(cases, one.Label)
	}
	wantText(t, strings.Join(cases, ","), "poll and ack,publish,hand out")
	if r := s.Reports[0].Ratios; len(r) != 3 || r[0].Target != queueTarget || r[2].By != "5ms" || r[2].Met == nil {
		t.Errorf("ratios %+v", r)
	}
}

func TestQueueThatCannotBeMeasuredIsRefused(t *testing.T) {
	c := newCLI(t)
	for _, m := range []struct {
		args []string
		want string
	}{
		{[]string{"--payload", "8"}, "--payload is 8; use at least 16"},
		{[]string{"--payload", "1000000"}, "--payload is 1000000; use 16 to"},
		{[]string{"--poll", "0"}, "--poll is 0; use 1 to 1000"},
		{[]string{"--in-flight", "257"}, "--in-flight is 257; use 1 to 256"},
		{[]string{"--rate", "0"}, "--rate is 0; use 1 to"},
		{[]string{"--raw"}, "--raw says nothing here"},
		{[]string{"--duration", "1ms"}, "--duration is 1ms"},
	} {
		if got := c.bench(exitUsage, append([]string{"queue", "orders"}, m.args...)...); !strings.Contains(got, m.want) {
			t.Errorf("%v: got %q, want %q", m.args, got, m.want)
		}
	}
	c = c.at(newBroker(t), "https://127.0.0.1:1")
	c.bench(exitNotFound, brief("queue", "missing")...)
}
