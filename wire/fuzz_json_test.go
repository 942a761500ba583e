package wire

import "testing"

// families are the messages by what they are about. Each has a fuzz target of its own, so that none of them is starved.
var families = map[string][]string{
	"session": {"auth", "auth_ok", "ok", "error", "unsupported", "extension"},
	"publish": {"publish", "publish_batch", "publish_ok", "publish_error", "publish_idempotent", "publish_if", "publish_refused",
		"producer_init", "producer_init_ok"},
	"subscribe": {"subscribe", "subscribed", "subscribe_cursor_error", "event_stream_hello", "event", "event_batch", "shard_moved",
		"subscription_lagged"},
	"topology": {"not_leader", "topology", "topology_view", "stream_shards", "stream_shards_view", "cache_shards", "cache_shards_view",
		"shard_owners", "shard_owners_view"},
	"cache": {"cache_put", "cache_ok", "cache_get", "cache_delete", "cache_value", "cache_put_if", "cache_delete_if",
		"cache_condition_result"},
	"watch":   {"cache_watch", "cache_watch_started", "cache_event", "cache_watch_lagged"},
	"counter": {"counter_add", "counter_get", "counter_value"},
	"commit":  {"commit", "commit_ok", "state_get", "state_value"},
	"group requests": {"group_poll", "group_ack", "group_nack", "group_extend", "group_dead_letter", "group_dead_letters",
		"group_discard", "group_redrive", "group_seek", "group_describe", "group_delete"},
	"group answers": {"group_records", "group_dead_letter_list", "group_extended", "group_position", "group_info", "group_deleted"},
	"read":          {"offset_for_time", "offset_value", "stream_read", "stream_records"},
	"inspect":       {"shard_inspect", "shard_inspect_info", "subscriptions_list", "subscriptions_list_info"},
}

// fuzzJSON fuzzes the messages of one family.
func fuzzJSON(f *testing.F, family string) {
	member := map[string]bool{}
	for _, typ := range families[family] {
		member[typ] = true
	}
	eachText(f, func(text []byte) {
		if typ, _, _ := PeekJSON(text); member[typ] {
			f.Add(text)
		}
	})
	f.Fuzz(func(t *testing.T, payload []byte) { checkJSON(t, payload) })
}

// eachText calls add with every JSON text of the vectors, good and bad.
func eachText(t testing.TB, add func(text []byte)) {
	v := loadVectors(t)
	for _, j := range v.JSON {
		add([]byte(j.Text))
	}
	for _, a := range v.Accepted {
		add([]byte(a.Text))
	}
	for _, r := range v.Refused {
		if r.Stage == "json" || r.Stage == "type" {
			add(unhex(t, r.Hex)[HeaderSize:])
		}
	}
}

func FuzzJSONSession(f *testing.F)       { fuzzJSON(f, "session") }
func FuzzJSONPublish(f *testing.F)       { fuzzJSON(f, "publish") }
func FuzzJSONSubscribe(f *testing.F)     { fuzzJSON(f, "subscribe") }
func FuzzJSONTopology(f *testing.F)      { fuzzJSON(f, "topology") }
func FuzzJSONCache(f *testing.F)         { fuzzJSON(f, "cache") }
func FuzzJSONWatch(f *testing.F)         { fuzzJSON(f, "watch") }
func FuzzJSONCounter(f *testing.F)       { fuzzJSON(f, "counter") }
func FuzzJSONCommit(f *testing.F)        { fuzzJSON(f, "commit") }
func FuzzJSONGroupRequests(f *testing.F) { fuzzJSON(f, "group requests") }
func FuzzJSONGroupAnswers(f *testing.F)  { fuzzJSON(f, "group answers") }
func FuzzJSONRead(f *testing.F)          { fuzzJSON(f, "read") }
func FuzzJSONInspect(f *testing.F)       { fuzzJSON(f, "inspect") }

func FuzzPeekJSON(f *testing.F) {
	eachText(f, func(text []byte) { f.Add(text) })
	f.Fuzz(func(t *testing.T, payload []byte) { checkPeek(t, payload) })
}

func TestEveryMessageHasAFamilyThatIsFuzzed(t *testing.T) {
	family := map[string]string{}
	for name, types := range families {
		for _, typ := range types {
			if other, twice := family[typ]; twice {
				t.Errorf("%s is in %s and in %s", typ, other, name)
			}
			family[typ] = name
			if m := newMessage([]byte(typ)); m == nil || m.MessageType() != typ {
				t.Errorf("%s makes %#v", typ, m)
			}
		}
	}
	for _, v := range loadVectors(t).JSON {
		typ, _, err := PeekJSON([]byte(v.Text))
		if err != nil || family[typ] == "" {
			t.Errorf("%s has no family, %v", typ, err)
		}
	}
	if len(family) != 76 {
		t.Errorf("%d types have a family, there are 76", len(family))
	}
}
