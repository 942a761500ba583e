package sessionactor

import (
	"strings"
	"testing"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// The largest value that a put is answered for is told by every get, by a watch as a change and as what is there, and by the delete. One that
// would be a byte too long for one of those, though it comes in a frame of its own, is refused and not there.
func TestTheLargestValueThatIsTakenIsToldToWhoeverAsks(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	name := route.Name{Kind: route.Cache, Tenant: tenant, Namespace: namespace, Name: "users"}
	const key = "a \"key\""
	c := x.connect()
	l := dial(t, c, today())
	longest := strings.Repeat("v", (wire.MaxPayload-cacheEnvelope(&name, key))/4*3)
	tooLong := putTo("users", key, longest+"four")
	if n := len(wire.AppendJSONFrame(nil, tooLong)) - wire.HeaderSize; n > wire.MaxPayload {
		t.Fatalf("a value of %d bytes comes in a payload of %d", len(tooLong.Value), n)
	}
	w := l.watch(c, watchOf("users"))
	if r := refused(t, l.ask(tooLong)); r.Code != wire.CodeLimitExceeded {
		t.Errorf("a value that no answer can hold was answered %s", r.Code)
	}
	if m, ok := l.ask(getFrom("users", key)).message.(*wire.CacheValue); !ok || m.Value.Set {
		t.Fatal("what was refused is there")
	}
	if effort.Raced { // what follows moves 16 MiB six times through a scanner of JSON, in one goroutine at a time
		return
	}
	l.put("users", key, longest)
	if e := w.change(); e.Key != key || string(e.Value.V) != longest {
		t.Errorf("the watch got a change of %d bytes of %.10q", len(e.Value.V), e.Key)
	}
	if m, ok := l.ask(deleteFrom("users", key)).message.(*wire.CacheValue); !ok || string(m.Value.V) != longest {
		t.Errorf("a delete got %d bytes", len(m.Value.V))
	}
}

// Whatever the key, an answer with the longest value for it fits into a frame, and so does a change; the refusal says how much is too much.
func TestTheRoomForAValueIsWhatItsAnswersLeave(t *testing.T) {
	name := route.Name{Kind: route.Cache, Tenant: strings.Repeat("t", wire.MaxNameBytes), Namespace: "n", Name: "users"}
	for _, key := range []string{"", "k", strings.Repeat("\x01", wire.MaxCacheKeyBytes)} {
		n := cacheEnvelope(&name, key)
		for _, m := range []wire.Message{
			&wire.CacheValue{TenantID: name.Tenant, Namespace: "n", Cache: "users", Key: key, Value: wire.Some(make([]byte, 300)), RequestID: wire.Some(uint64(1)), Version: wire.Some(uint64(7))},
			&wire.CacheEvent{Key: key, Value: wire.Some(make([]byte, 300)), Offset: 7, ExpiresAtMillis: 253402300799999},
		} {
			if got := len(wire.AppendJSONFrame(nil, m)) - wire.HeaderSize - 400; got > n {
				t.Errorf("a %s has %d bytes beside its value, %d are left for them", m.MessageType(), got, n)
			}
		}
		if n+roomyValue/3*4+4 > wire.MaxPayload {
			t.Errorf("a value of %d bytes may not fit beside %d", roomyValue, n)
		}
	}
}

// A prefix that is a key is that key and those that go on from it; the empty key is a key like others, and the empty value a value.
func TestWatchesAtTheEdgesOfKeysAndPrefixes(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	ofA, ofAKey, ofNone := l.watch(c, watchOf("users", ofPrefix("a"))), l.watch(c, watchOf("users", ofKey("a"))), l.watch(c, watchOf("users", ofKey("")))
	longest := strings.Repeat("a", wire.MaxCacheKeyBytes)
	for _, key := range []string{"", "a", "ab", "b", longest} {
		l.put("users", key, "")
	}
	l.ask(deleteFrom("users", ""))
	l.ask(deleteFrom("users", "a"))
	ofA.expect("a= at 1", "ab= at 2", longest+"= at 4", "a gone at 6")
	ofAKey.expect("a= at 1", "a gone at 6")
	ofNone.expect("= at 0", " gone at 5")
	if m, ok := l.ask(getFrom("users", "ab")).message.(*wire.CacheValue); !ok || !m.Value.Set || len(m.Value.V) != 0 {
		t.Errorf("the empty value is answered %+v", m)
	}
	again := l.watch(c, watchOf("users", ofPrefix(longest), since(id.Offset(0))))
	again.expect(longest + "= at 4")
	end := l.watch(c, watchOf("users", since(id.Offset(7))))
	l.put("users", "a", "on")
	end.expect("a=on at 7")
	if m, ok := l.ask(watchOf("users", since(9))).message.(*wire.SubscribeCursorError); !ok || m.Available != 8 {
		t.Errorf("a watch from past the end was answered %+v", m)
	}
}
