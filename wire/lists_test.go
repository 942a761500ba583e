package wire

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// viewHead begins a shard_inspect_info up to the optional members of its view.
const viewHead = `{"type":"shard_inspect_info","request_id":1,"view":{"node_id":"","shards":0,"role":"","phase":"","serving":false,`

// A list of objects: its shortest entry, where it stands, and what one entry takes in memory.
type listCase struct {
	name        string
	least       int
	head, entry string
	tail        string
	find        func(Message) any
	size        uintptr
	limit       int
}

func listCases() []listCase {
	const tns = `"tenant_id":"","namespace":"","stream":"",`
	return []listCase{
		{"brokers", leastBroker, `{"type":"topology_view","brokers":`, `{"node_id":"","addr":""}`, `}`,
			func(m Message) any { return m.(*TopologyView).Brokers }, unsafe.Sizeof(Broker{}), unlimited},
		{"owners", leastShardOwner, `{"type":"shard_owners_view","request_id":1,"owners":`, `{"shard":0,"generation":0}`, `}`,
			func(m Message) any { return m.(*ShardOwnersView).Owners }, unsafe.Sizeof(ShardOwner{}), MaxShardOwners},
		{"stream records", leastStreamRecord, `{"type":"stream_records","next_offset":0,"request_id":1,"records":`,
			`{"offset":0,"payload":"","timestamp_micros":0}`, `}`,
			func(m Message) any { return m.(*StreamRecords).Records }, unsafe.Sizeof(StreamRecord{}), unlimited},
		{"group records", leastGroupRecord, `{"type":"group_records","request_id":1,"records":`, `{"offset":0,"payload":""}`, `}`,
			func(m Message) any { return m.(*GroupRecords).Records }, unsafe.Sizeof(GroupRecord{}), MaxGroupRecords},
		{"changes", leastChange, `{"type":"commit",` + tns + `"entity_key":"","event":"","request_id":1,"changes":`, `{"op":"delete","key":""}`, `}`,
			func(m Message) any { return m.(*Commit).Changes }, unsafe.Sizeof(Change{}), unlimited},
		{"replicas", leastReplica, viewHead + `"replicas":`, `{"node_id":"","role":""}`, `}}`,
			func(m Message) any { return m.(*ShardInspectInfo).View.Replicas }, unsafe.Sizeof(ReplicaView{}), MaxShardReplicas},
		{"nodes", leastNode, viewHead + `"fence":{"took":`, `""`, `}}}`,
			func(m Message) any { return m.(*ShardInspectInfo).View.Fence.V.Took }, unsafe.Sizeof(""), MaxShardReplicas},
		{"subscriptions", leastSubscription, `{"type":"subscriptions_list_info","node_id":"","request_id":1,"subscriptions":`,
			`{` + tns + `"shard":0,"subscriber_id":0,"policy":"","depth":0,"capacity":0,"dropped":0,"tail":0,"age_ms":0}`, `}`,
			func(m Message) any { return m.(*SubscriptionsListInfo).Subscriptions }, unsafe.Sizeof(SubscriptionView{}), MaxInspectPage},
	}
}

func TestAListIsAllocatedOnceAndByTheEntriesItHas(t *testing.T) {
	for _, c := range listCases() {
		for n := range 12 {
			text := c.head + `[` + strings.TrimSuffix(strings.Repeat(c.entry+",", n), ",") + `]` + c.tail
			m, err := DecodeJSON([]byte(text))
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if list := reflect.ValueOf(c.find(m)); list.Len() != n || list.Cap() != n {
				t.Errorf("%s: room for %d, %d came, want %d", c.name, list.Cap(), list.Len(), n)
			}
		}
	}
}

func TestTheShortestEntryOfAListIsAsLongAsItsRoomSays(t *testing.T) {
	for _, c := range listCases() {
		if c.least != len(c.entry)+1 {
			t.Errorf("%s: %d bytes per entry are counted, the shortest has %d", c.name, c.least, len(c.entry)+1)
		}
	}
}

func TestListsFitWhatTheirTextMayCost(t *testing.T) {
	const granted = 60 << 10 // of the 64 KiB, the rest is for the message around the list
	for _, c := range listCases() {
		each := int(c.size) - 2*c.least
		if each > 0 && (c.limit == unlimited || c.limit*each > granted) {
			t.Errorf("%s: an entry of %d bytes for a text of %d, up to %d of them", c.name, c.size, c.least, c.limit)
		}
	}
}

func TestListsThatOutgrowTheirTextAreBounded(t *testing.T) {
	for _, c := range listCases() {
		if c.limit == unlimited {
			continue
		}
		list := func(n int) []byte {
			return []byte(c.head + `[` + strings.Repeat(c.entry+",", n-1) + c.entry + `]` + c.tail)
		}
		if _, err := DecodeJSON(list(c.limit)); err != nil {
			t.Errorf("%s at the limit: %v", c.name, err)
		}
		if _, err := DecodeJSON(list(c.limit + 1)); err == nil || !strings.Contains(err.Error(), "entries are over the limit of") {
			t.Errorf("%s over the limit: %v", c.name, err)
		}
	}
}

func TestListsOfObjectsComeOnce(t *testing.T) {
	for _, c := range listCases() {
		name := c.head[strings.LastIndex(c.head[:len(c.head)-2], `"`):]
		if _, err := DecodeJSON([]byte(c.head + `[],` + name + `[]` + c.tail)); err == nil || !strings.Contains(err.Error(), "given twice") {
			t.Errorf("%s given twice: %v", c.name, err)
		}
	}
}
