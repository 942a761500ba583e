package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

// closer is a client that is closed by what it calls.
type closer struct {
	client chan *Client
	once   sync.Once
	closed chan error // what Close returned there
}

func newCloser() *closer { return &closer{client: make(chan *Client, 1), closed: make(chan error, 1)} }

// close closes the client, the first time that it is called once there is one.
func (x *closer) close(ctx context.Context) {
	select {
	case c := <-x.client:
		x.once.Do(func() { x.closed <- c.Close(ctx) })
	default:
	}
}

// refusePolls makes polls fail, which a consumer goes on from.
func refusePolls(o *testbroker.Options) {
	o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
		refused := isA[*wire.GroupPoll](f.Message())
		if refused {
			s.Refuse(wire.Refuse(wire.CodeOverloaded, "not now"))
		}
		return refused
	}
}

// unclosed is connect for a client whose test closes it.
func unclosed(t *testing.T, b *testbroker.Broker, changes ...change) *Client {
	t.Helper()
	c, err := Connect(within(t), optionsFor(b, changes...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Close ends from whatever the client calls: it waits until its time is up, since it waits for its caller, and the client closes once that has
// returned. Further calls say how that went.
func TestCloseEndsWhereverItIsCalledFrom(t *testing.T) {
	hooked := func(h Hooks) change { return func(o *Options) { o.Hooks = h } }
	lost := func(t *testing.T, b *testbroker.Broker, _ *Client) { b.Drop(0) }
	for name, p := range map[string]struct {
		broker func(*testbroker.Options)
		client func(t *testing.T, x *closer) change
		free   bool // Close does not wait for it
		begin  func(t *testing.T, b *testbroker.Broker, c *Client, x *closer)
	}{
		"OnError": {
			broker: refusePolls,
			begin: func(t *testing.T, _ *testbroker.Broker, c *Client, x *closer) {
				x.client <- c
				consume(t, c, func(context.Context, Message) error { return nil }, ConsumeOptions{OnError: func(*Message, error) { x.close(short(t)) }})
			},
		},
		"OnError of a handler": {
			free: true, // what is in hand is given back meanwhile
			begin: func(t *testing.T, _ *testbroker.Broker, c *Client, x *closer) {
				x.client <- c
				consume(t, c, func(context.Context, Message) error { return errors.New("no") }, ConsumeOptions{OnError: func(m *Message, _ error) {
					if m != nil {
						x.close(short(t))
					}
				}})
			},
		},
		"RetryDelay": {
			free: true, // what is in hand is given back meanwhile
			begin: func(t *testing.T, _ *testbroker.Broker, c *Client, x *closer) {
				x.client <- c
				consume(t, c, func(context.Context, Message) error { return errors.New("no") }, ConsumeOptions{RetryDelay: func(Message, error) time.Duration {
					x.close(short(t))
					return 0
				}})
			},
		},
		"a handler with another context": {
			free: true, // what is in hand is given back meanwhile
			begin: func(t *testing.T, _ *testbroker.Broker, c *Client, x *closer) {
				x.client <- c
				consume(t, c, func(context.Context, Message) error { x.close(short(t)); return nil }, ConsumeOptions{})
			},
		},
		"Hooks.Connected": {
			client: func(t *testing.T, x *closer) change {
				return hooked(Hooks{Connected: func(ConnectionInfo) { x.close(short(t)) }})
			},
			begin: func(t *testing.T, b *testbroker.Broker, c *Client, x *closer) {
				x.client <- c
				lost(t, b, c)
				go func() { _, _ = c.StreamShards(context.Background(), "ns", "s") }()
			},
		},
		"Hooks.Disconnected": {
			client: func(t *testing.T, x *closer) change {
				return hooked(Hooks{Disconnected: func(ConnectionInfo, error) { x.close(short(t)) }})
			},
			begin: func(t *testing.T, b *testbroker.Broker, c *Client, x *closer) {
				x.client <- c
				lost(t, b, c)
			},
		},
		"Hooks.Retrying": {
			broker: refusePolls,
			client: func(t *testing.T, x *closer) change {
				return hooked(Hooks{Retrying: func(Retry) { x.close(short(t)) }})
			},
			begin: func(t *testing.T, _ *testbroker.Broker, c *Client, x *closer) {
				x.client <- c
				consume(t, c, func(context.Context, Message) error { return nil }, ConsumeOptions{})
			},
		},
		"Hooks.Dropped": {
			client: func(t *testing.T, x *closer) change {
				return hooked(Hooks{Dropped: func(Drop) { x.close(short(t)) }})
			},
			begin: func(t *testing.T, _ *testbroker.Broker, c *Client, x *closer) {
				x.client <- c
				s, err := c.Subscribe(within(t), "ns", "s", SubscribeOptions{Policy: QueueDropNew, ClientQueue: 1})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(s.Close)
				go func() {
					for err == nil { // until the client is closed
						_, err = c.PublishBatch(context.Background(), "ns", "s", [][]byte{[]byte("x")})
					}
				}()
			},
		},
		"TokenProvider with another context": {
			client: func(t *testing.T, x *closer) change {
				return func(o *Options) {
					o.Token, o.TokenProvider = "", func(context.Context) (string, error) { x.close(short(t)); return testbroker.Token, nil }
				}
			},
			begin: func(_ *testing.T, _ *testbroker.Broker, c *Client, x *closer) {
				x.client <- c
				go func() { _, _ = c.Publish(context.Background(), "ns", "s", []byte("x")) }()
			},
		},
		"TokenSource": {
			client: func(t *testing.T, x *closer) change {
				return func(o *Options) {
					o.Token, o.TokenSource = "", NewTokenSource(func(context.Context) (Token, error) {
						x.close(short(t))
						return Token{Value: testbroker.Token}, nil
					})
				}
			},
			begin: func(_ *testing.T, _ *testbroker.Broker, c *Client, x *closer) {
				x.client <- c
				c.opts.TokenSource.Refused(testbroker.Token)
				go func() { _, _, _ = c.CacheGet(context.Background(), "ns", "c", "k") }()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			b := queue(t, 1, 1, func(o *testbroker.Options) {
				o.Caches = map[string]uint32{"ns/c": 1}
				if p.broker != nil {
					p.broker(o)
				}
			})
			x := newCloser()
			var changes []change
			if p.client != nil {
				changes = append(changes, p.client(t, x))
			}
			c := unclosed(t, b, changes...)
			p.begin(t, b, c, x)
			if err := await(t, "end of Close", x.closed); err != nil || !p.free {
				wantIs(t, err, context.DeadlineExceeded)
			}
			again := make(chan error, 1)
			go func() { again <- c.Close(within(t)) }()
			await(t, "end of the client", again)
			if _, err := c.Publish(within(t), "ns", "s", nil); !errors.Is(err, ErrClosed) {
				t.Errorf("a publish after Close: %v", err)
			}
		})
	}
}

// With the context of the call in which it is called, Close waits for nothing, and the client closes in order once that has returned.
func TestCloseInACallWithItsContextReturnsAtOnce(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, b *testbroker.Broker, x *closer) *Client{
		"handler": func(t *testing.T, b *testbroker.Broker, x *closer) *Client {
			c := unclosed(t, b)
			x.client <- c
			consume(t, c, func(ctx context.Context, _ Message) error {
				x.close(context.WithoutCancel(ctx)) // one that is made from it
				return nil
			}, ConsumeOptions{})
			return c
		},
		"TokenProvider": func(t *testing.T, b *testbroker.Broker, x *closer) *Client {
			c := unclosed(t, b, func(o *Options) {
				o.Token, o.TokenProvider = "", func(ctx context.Context) (string, error) { x.close(ctx); return testbroker.Token, nil }
			})
			x.client <- c
			go func() { _, _ = c.Publish(context.Background(), "ns", "s", []byte("x")) }()
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			x := newCloser()
			c := begin(t, queue(t, 1, 1), x)
			wantIs(t, await(t, "end of Close", x.closed), ErrCloseInside)
			again := make(chan error, 1)
			go func() { again <- c.Close(within(t)) }()
			if err := await(t, "end of the client", again); err != nil {
				t.Error(err)
			}
		})
	}
}

// The loop over events or changes is the program's, and Close does not wait for it.
func TestCloseInALoopOverEventsEndsIt(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 3)
	c := unclosed(t, b)
	s, err := c.Subscribe(within(t), "ns", "s", SubscribeOptions{From: Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Events(within(t)) {
		if err != nil {
			break
		}
		if err := c.Close(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Next(within(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
