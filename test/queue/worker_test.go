package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire/id"
)

// worker is a client of a group of the one shard. What it asks for must be answered, unless it asks by try.
type worker struct {
	*client.Client
	t     testing.TB
	group string
}

// connect is a worker with a connection of its own, as long as the test goes.
func (s *site) connect(change ...func(*client.Options)) worker {
	s.t.Helper()
	o := client.Options{Addrs: []string{s.identity.Addr}, TenantID: tenant, Token: s.identity.Token, CAPEM: s.identity.CA}
	for _, f := range change {
		f(&o)
	}
	w := worker{testkit.Connect(s.t, o), s.t, workers}
	s.t.Cleanup(w.leave)
	return w
}

// of is the worker in another group.
func (w worker) of(group string) worker {
	w.group = group
	return w
}

// leave closes the connection; its broker may be gone.
func (w worker) leave() { testkit.HangUp(w.Client) }

// publish publishes records, which lie at consecutive offsets then, and returns the first.
func (w worker) publish(payloads ...string) id.Offset {
	w.t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	var list [][]byte
	for _, p := range payloads {
		list = append(list, []byte(p))
	}
	r, err := w.PublishBatch(ctx, namespace, jobs, list)
	if err != nil || !r.HasOffset {
		w.t.Fatalf("publish: %+v, %v", r, err)
	}
	return r.Offset
}

// numbered are n payloads that tell their offsets in a stream that is empty.
func numbered(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("job ", i))
	}
	return list
}

// poll claims records: for an hour if nothing is said of that, so that none comes again because a machine was slow.
func (w worker) poll(o client.GroupPollOptions) []client.Message {
	w.t.Helper()
	if o.Visibility == 0 {
		o.Visibility = hour
	}
	ctx, cancel := testkit.Within()
	defer cancel()
	list, err := w.GroupPoll(ctx, namespace, jobs, 0, w.group, o)
	if err != nil {
		w.t.Fatalf("poll: %v", err)
	}
	return list
}

// take polls until it has n records, which must come.
func (w worker) take(n int, o client.GroupPollOptions) (list []client.Message) {
	w.t.Helper()
	late := time.Now().Add(testkit.Patience)
	o.Wait = time.Second
	for len(list) < n && time.Now().Before(late) {
		o.Max = min(n-len(list), client.GroupPollMax)
		list = append(list, w.poll(o)...)
	}
	if len(list) < n {
		w.t.Fatalf("%d of %d records came", len(list), n)
	}
	return list
}

func (w worker) tryAck(o id.Offset) error {
	ctx, cancel := testkit.Within()
	defer cancel()
	return w.GroupAck(ctx, namespace, jobs, 0, w.group, o)
}

func (w worker) tryNack(m client.Message, delay time.Duration) error {
	ctx, cancel := testkit.Within()
	defer cancel()
	return w.GroupNack(ctx, namespace, jobs, 0, w.group, m.Offset, client.GroupNackOptions{Attempts: m.Attempts, Delay: delay})
}

func (w worker) tryExtend(m client.Message, by time.Duration) error {
	ctx, cancel := testkit.Within()
	defer cancel()
	_, err := w.GroupExtend(ctx, namespace, jobs, 0, w.group, m.Offset, m.Attempts, by)
	return err
}

func (w worker) tryGiveUp(o id.Offset) error {
	ctx, cancel := testkit.Within()
	defer cancel()
	return w.GroupDeadLetter(ctx, namespace, jobs, 0, w.group, o)
}

func (w worker) tryRedrive(o id.Offset) error {
	ctx, cancel := testkit.Within()
	defer cancel()
	return w.GroupRedrive(ctx, namespace, jobs, 0, w.group, o)
}

func (w worker) ack(list ...client.Message) {
	w.t.Helper()
	for _, m := range list {
		if err := w.tryAck(m.Offset); err != nil {
			w.t.Fatalf("ack %d: %v", m.Offset, err)
		}
	}
}

func (w worker) nack(m client.Message, delay time.Duration) {
	w.t.Helper()
	if err := w.tryNack(m, delay); err != nil {
		w.t.Fatalf("nack %d: %v", m.Offset, err)
	}
}

func (w worker) info() client.GroupInfo {
	w.t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	return must(w.GroupDescribe(ctx, namespace, jobs, 0, w.group))(w.t)
}

func (w worker) deadLetters() []id.Offset {
	w.t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	return must(w.GroupDeadLetters(ctx, namespace, jobs, 0, w.group))(w.t)
}

// drained fails the test unless everything is finished, and the dead letters are these.
func (w worker) drained(dead ...id.Offset) {
	w.t.Helper()
	i := w.info()
	if !i.HasCommitted || i.Committed != i.Tail || i.Lag() != 0 || i.InFlight != 0 || i.Owed != 0 || i.DeadLetters != uint64(len(dead)) {
		w.t.Errorf("the group is not drained: %+v; want %d dead letters", i, len(dead))
	}
	if got := w.deadLetters(); !slices.Equal(got, dead) {
		w.t.Errorf("the dead letters are %d, want %d", got, dead)
	}
}

// offsets are those of messages, lowest first.
func offsets(list []client.Message) (all []id.Offset) {
	for _, m := range list {
		all = append(all, m.Offset)
	}
	slices.Sort(all)
	return all
}

// upTo are the offsets from first, without the end.
func upTo(first, end id.Offset) (all []id.Offset) {
	for o := first; o < end; o++ {
		all = append(all, o)
	}
	return all
}

// attempts fails the test unless these are the deliveries of that number.
func attempts(t testing.TB, list []client.Message, want uint32) {
	t.Helper()
	for _, m := range list {
		if m.Attempts != want {
			t.Errorf("offset %d is delivery %d, want %d", m.Offset, m.Attempts, want)
		}
	}
}

// same fails the test unless the offsets are the wanted ones.
func same(t testing.TB, what string, list []client.Message, want []id.Offset) {
	t.Helper()
	if got := offsets(list); !slices.Equal(got, want) {
		t.Errorf("%s: offsets %d, want %d", what, got, want)
	}
}
