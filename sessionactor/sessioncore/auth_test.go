package sessioncore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixd/felixd/wire"
)

func TestARequestBeforeAuthIsUnauthenticatedAndEndsTheStream(t *testing.T) {
	for name, c := range map[string]struct {
		frame Frame
		want  string
		code  string // what the words must hold, for a client that was not asked for its bits yet
	}{
		"get":            {get(), "error", "unauthorized"},
		"acked publish":  {acked(3), "publish 3 refused", "unauthorized"},
		"unknown type":   {text(`{"type":"what"}`), "error", "unauthorized"},
		"no JSON":        {text("hello"), "error", "first frame"},
		"malformed":      {cut(acked(3), 2), "publish 3 refused", "first frame"},
		"unknown flags":  {frameOf(0x8000, nil), "error", "first frame"},
		"malformed auth": {text(`{"type":"auth"}`), "error", "first frame"},
	} {
		s := unauthenticated(wire.RoleControl)
		if q := s.Frame(c.frame); q.Do != Nothing {
			t.Fatalf("%s: wants %d", name, q.Do)
		}
		got := one(t, s)
		if f := got.failure(t); got.String() != c.want || f.Code != wire.CodeUnknown || !strings.Contains(f.Message, c.code) {
			t.Errorf("%s: answered %s %q", name, got, got.payload)
		}
		if !s.Finished() || s.Released() != len(c.frame.Payload()) {
			t.Errorf("%s: the stream goes on", name)
		}
		s.Frame(message(todayOffered()))
		none(t, s)
		if s.Authenticated() {
			t.Errorf("%s: auth was taken after the stream had ended", name)
		}
	}
}

func TestASecondAuthIsRefusedAndTheStreamGoesOnWithTheFirst(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	q := s.Frame(message(nothingOffered()))
	if got := one(t, s); q.Do != Nothing || got.failure(t).Code != wire.CodeInvalidRequest || s.Ended() != "" {
		t.Fatalf("answered %s, ended %q", got, s.Ended())
	}
	s.Settle(s.Frame(acked(1)).Token, Answer{HasOffset: true, Offset: 1})
	if got := one(t, s); got.flags&wire.FlagPublishAck == 0 {
		t.Errorf("the offer of the second auth counts: %s", got)
	}
}

func TestARefusedTokenIsToldInTheFormThatTheAuthOfferedAndEndsTheStream(t *testing.T) {
	for name, c := range map[string]struct {
		auth  *wire.Auth
		codes bool
	}{"nothing offered": {nothingOffered(), false}, "today's bits": {todayOffered(), true}} {
		s := unauthenticated(wire.RoleControl)
		q := s.Frame(message(c.auth))
		f := wire.Refuse(wire.CodeUnauthenticated, "unauthorized: token rejected")
		s.AuthenticatedAs(q.Token, q.Message.(*wire.Auth), nil, &f)
		got := one(t, s)
		if refusal := got.failure(t); refusal.Message != f.Message || (refusal.Code == wire.CodeUnauthenticated) != c.codes {
			t.Errorf("%s: answered %q", name, got.payload)
		}
		if !s.Finished() || s.Authenticated() || s.MaxPayload() != wire.MaxPreauthPayload {
			t.Errorf("%s: finished %v, authenticated %v", name, s.Finished(), s.Authenticated())
		}
	}
}

// grouped is a request of a consumer group.
func grouped(typ, rest string) Frame {
	return text(`{"type":%q,"tenant_id":"t1","namespace":"default","stream":"orders","shard":0,"group":"g","request_id":1%s}`, typ, rest)
}

func TestARefusalForWantOfAPermissionNamesThePermission(t *testing.T) {
	in := func(cache string) string {
		return fmt.Sprintf(`"tenant_id":"t1","namespace":"default","cache":%q,"key":"k/1"`, cache)
	}
	for _, c := range []struct {
		denied Action
		frame  Frame
		want   string
	}{
		{ActionPublish, acked(1), "stream.publish on stream:t1/default/orders"},
		{ActionPublish, text(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"orders","payload":"","request_id":1,"ack":"per_batch"}`), "stream.publish on stream:t1/default/orders"},
		{ActionSubscribe, text(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"orders"}`), "stream.subscribe on stream:t1/default/orders"},
		{ActionCacheRead, text(`{"type":"cache_get",%s}`, in("users")), "cache.read on cache:t1/default/users/k/1"},
		{ActionCacheWrite, text(`{"type":"cache_put",%s,"value":""}`, in("users")), "cache.write on cache:t1/default/users/k/1"},
		{ActionCacheWrite, text(`{"type":"cache_delete",%s}`, in("users")), "cache.write on cache:t1/default/users/k/1"},
		{ActionCacheWrite, text(`{"type":"cache_put_if",%s,"value":"","condition":"absent","request_id":1}`, in("users")), "cache.write on cache:t1/default/users/k/1"},
		{ActionCacheWrite, text(`{"type":"cache_delete_if",%s,"version":1,"request_id":1}`, in("users")), "cache.write on cache:t1/default/users/k/1"},
		{ActionCacheWrite, text(`{"type":"counter_add",%s,"delta":1,"request_id":1}`, in("users")), "cache.write on cache:t1/default/users/k/1"},
		{ActionCacheRead, text(`{"type":"counter_get",%s,"request_id":1}`, in("users")), "cache.read on cache:t1/default/users/k/1"},
		{ActionCacheRead, text(`{"type":"cache_watch",%s}`, in("users")), "cache.read on cache:t1/default/users/k/1"},
		{ActionCacheRead, text(`{"type":"cache_watch","tenant_id":"t1","namespace":"default","cache":"users","prefix":"k/"}`), "cache.read on cache:t1/default/users/k/*"},
		{ActionCacheRead, text(`{"type":"cache_watch","tenant_id":"t1","namespace":"default","cache":"users","prefix":""}`), "cache.read on cache:t1/default/users"},
		{ActionGroupConsume, grouped("group_poll", `,"max_records":1`), "group.consume on group:t1/default/orders/g"},
		{ActionGroupConsume, grouped("group_ack", `,"offset":1`), "group.consume on group:t1/default/orders/g"},
		{ActionGroupConsume, grouped("group_nack", `,"offset":1`), "group.consume on group:t1/default/orders/g"},
		{ActionGroupConsume, grouped("group_extend", `,"offset":1,"attempts":1,"extend_ms":1`), "group.consume on group:t1/default/orders/g"},
		{ActionGroupConsume, grouped("group_dead_letter", `,"offset":1`), "group.consume on group:t1/default/orders/g"},
		{ActionGroupConsume, grouped("group_dead_letters", ``), "group.consume on group:t1/default/orders/g"},
		{ActionGroupConsume, grouped("group_describe", ``), "group.consume on group:t1/default/orders/g"},
		{ActionGroupManage, grouped("group_discard", `,"offset":1`), "group.manage on group:t1/default/orders/g"},
		{ActionGroupManage, grouped("group_redrive", `,"offset":1`), "group.manage on group:t1/default/orders/g"},
		{ActionGroupManage, grouped("group_seek", `,"start":"earliest"`), "group.manage on group:t1/default/orders/g"},
		{ActionGroupManage, grouped("group_delete", ``), "group.manage on group:t1/default/orders/g"},
	} {
		s := open(t, todayOffered(), rights{denied: c.denied})
		q := s.Frame(c.frame)
		f := one(t, s).failure(t)
		if q.Do != Nothing || f.Code != wire.CodeForbidden || !strings.HasSuffix(f.Message, c.want) || !strings.Contains(f.Message, "permission") {
			t.Errorf("%s: %+v", c.want, f)
		}
		if s.Ended() != "" || s.Open() != 0 {
			t.Errorf("%s: ended %q, %d open", c.want, s.Ended(), s.Open())
		}
		if q := open(t, todayOffered(), rights{}).Frame(c.frame); q.Do == Nothing {
			t.Errorf("%s: refused to one who has it", c.want)
		}
	}
}

// mission 231
func TestEveryRequestThatNamesAnotherTenantIsForbidden(t *testing.T) {
	foreign := published("hello", 1)
	foreign.Tenant, foreign.Flags, foreign.RequestID, foreign.Ack = []byte("t2"), wire.FlagPublishBatch|wire.FlagPublishAcked, 1, wire.AckPerBatch
	frames := map[string]Frame{"publish": binaryFrame(foreign)}
	for typ, rest := range map[string]string{
		"subscribe": `"stream":"s"`, "stream_shards": `"stream":"s","request_id":1`,
		"cache_shards": `"cache":"c","request_id":1`, "shard_owners": `"name":"s","kind":"stream","request_id":1`,
		"cache_get": `"cache":"c","key":"k"`, "cache_put": `"cache":"c","key":"k","value":""`, "cache_delete": `"cache":"c","key":"k"`,
		"cache_put_if": `"cache":"c","key":"k","value":"","condition":"absent","request_id":1`, "cache_delete_if": `"cache":"c","key":"k","version":1,"request_id":1`,
		"cache_watch": `"cache":"c","key":"k"`, "counter_add": `"cache":"c","key":"k","delta":1,"request_id":1`, "counter_get": `"cache":"c","key":"k","request_id":1`,
		"group_poll": `"stream":"s","shard":0,"group":"g","request_id":1,"max_records":1`, "group_delete": `"stream":"s","shard":0,"group":"g","request_id":1`,
	} {
		frames[typ] = text(`{"type":%q,"tenant_id":"t2","namespace":"n",%s}`, typ, rest)
	}
	for name, f := range frames {
		s := open(t, todayOffered(), rights{})
		q := s.Frame(f)
		if got := one(t, s).failure(t); q.Do != Nothing || got.Code != wire.CodeForbidden || !strings.Contains(got.Message, `"t2"`) {
			t.Errorf("%s: wants %d, answered %+v", name, q.Do, got)
		}
	}
	s := open(t, todayOffered(), rights{})
	if q := s.Frame(text(`{"type":"topology"}`)); q.Do != Ask {
		t.Errorf("topology needs a right")
	}
}

func TestTheRightToPublishIsJudgedForEachStreamAnew(t *testing.T) {
	s := open(t, todayOffered(), rights{})
	s.Settle(s.Frame(acked(1)).Token, Answer{})
	other := published("hello", 1)
	other.Tenant, other.Flags, other.RequestID, other.Ack = []byte("t2"), wire.FlagPublishBatch|wire.FlagPublishAcked, 2, wire.AckPerBatch
	if q := s.Frame(binaryFrame(other)); q.Do != Nothing {
		t.Fatal("the right of the stream before was used")
	}
	// A refused stream does not become the one that was allowed.
	if q := s.Frame(binaryFrame(other)); q.Do != Nothing {
		t.Fatal("refused once and taken then")
	}
	if q := s.Frame(acked(3)); q.Do != Publish {
		t.Fatal("the first stream is not allowed any more")
	}
}

// looked notes what a token was asked for.
type looked struct {
	rights
	objects *[]Object
}

func (l looked) Allows(_ Action, o Object) bool {
	*l.objects = append(*l.objects, o)
	return true
}

// A watch of a prefix is no request on a key that happens to be called so: a right to that key is none to the prefix. What names both or
// neither is judged as what takes most.
func TestAWatchAsksForTheRightToAllThatItMayShow(t *testing.T) {
	whole := Object{Tenant: tenant, Namespace: "default", Name: "users"}
	key, prefix, all := whole, whole, whole
	key.Key, key.HasKey = "k", true
	prefix.Prefix, prefix.HasPrefix, all.HasPrefix = "k", true, true
	for filter, want := range map[string]Object{`"key":"k"`: key, `"prefix":"k"`: prefix, `"prefix":""`: all, `"key":"x","prefix":"k"`: prefix, `"shard":0`: all} {
		var objects []Object
		s := open(t, todayOffered(), looked{objects: &objects})
		s.Frame(text(`{"type":"cache_watch","tenant_id":"t1","namespace":"default","cache":"users",%s}`, filter))
		if len(objects) != 1 || objects[0] != want {
			t.Errorf("%s takes a right to %+v, want %+v", filter, objects, want)
		}
	}
}
