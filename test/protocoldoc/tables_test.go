package protocoldoc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// hexNumber reads 0x… of a cell.
func hexNumber(t testing.TB, cell string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cell, 0, 64)
	if err != nil {
		t.Fatalf("%q is no number: %v", cell, err)
	}
	return n
}

func TestTheTableOfFlagsIsTheCodecs(t *testing.T) {
	var all wire.Flags
	for _, row := range protocol(t).table(t, "bit", "name", "sent by").rows {
		f := wire.Flags(hexNumber(t, row[0]))
		all |= f
		if f.String() != row[1] {
			t.Errorf("%s is called %s, and the codec says %s", row[0], row[1], f)
		}
		if got := senders(f); got != row[2] {
			t.Errorf("%s is sent by the %s, and the codec says %s", row[0], row[2], got)
		}
		checkNeeds(t, f, row[3])
	}
	if all != wire.KnownFlags {
		t.Errorf("the table has 0x%04x, and the codec knows 0x%04x", uint16(all), uint16(wire.KnownFlags))
	}
}

// senders finds out which side may send a frame with the bit, trying everything that may go with it.
func senders(bit wire.Flags) string {
	client, broker := false, false
	for rest := range wire.KnownFlags + 1 {
		f := rest | bit
		client = client || f.CheckClientToServer() == nil
		broker = broker || f.CheckServerToClient() == nil
	}
	switch {
	case client && !broker:
		return "client"
	case broker && !client:
		return "broker"
	}
	return fmt.Sprintf("client %v, broker %v", client, broker)
}

// checkNeeds tries every legal frame that has the bit: the bits of the cell must be there, any of them where it says "or".
func checkNeeds(t testing.TB, bit wire.Flags, cell string) {
	t.Helper()
	var needs []wire.Flags
	for word := range strings.FieldsSeq(cell) {
		if word != "or" {
			needs = append(needs, wire.Flags(hexNumber(t, word)))
		}
	}
	for rest := range wire.KnownFlags + 1 {
		f := rest | bit
		if f.CheckClientToServer() != nil && f.CheckServerToClient() != nil {
			continue
		}
		ok := len(needs) == 0
		for _, n := range needs {
			ok = ok || f.Has(n)
		}
		if !ok {
			t.Errorf("0x%04x may be sent, and the table says that 0x%04x needs %s", uint16(f), uint16(bit), cell)
		}
	}
	for _, n := range needs { // and the need is one: without any of them the bit is refused
		if f := bit; f.CheckClientToServer() == nil || f.CheckServerToClient() == nil {
			t.Errorf("0x%04x may be sent alone, and the table says that it needs 0x%04x", uint16(bit), uint16(n))
		}
	}
}

func TestThePageListsAllThatAClientMaySend(t *testing.T) {
	var legal []string
	for f := range wire.KnownFlags + 1 {
		if f.CheckClientToServer() == nil {
			legal = append(legal, fmt.Sprintf("0x%04x", uint16(f)))
		}
	}
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(text), "Legal sets are, for a client, ")
	list, _, end := strings.Cut(list, ";")
	shown := strings.FieldsFunc(list, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefx", r) })
	shown = slices.DeleteFunc(shown, func(w string) bool { return !strings.HasPrefix(w, "0x") })
	slices.Sort(shown)
	if !ok || !end || !slices.Equal(shown, legal) {
		t.Errorf("the page lists %v, and the codec takes %v", shown, legal)
	}
}

// features gives each name of the table its constant. The names of the constants are the table's, written differently.
var features = map[string]wire.Features{
	"TOPOLOGY": wire.FeatureTopology, "REDIRECT": wire.FeatureRedirect, "CACHE_DELETE": wire.FeatureCacheDelete,
	"CONSUMER_GROUP": wire.FeatureConsumerGroup, "GROUP_DEAD_LETTERS": wire.FeatureGroupDeadLetters, "STREAM_SHARDS": wire.FeatureStreamShards,
	"CACHE_WATCH": wire.FeatureCacheWatch, "CACHE_WATCH_RETAINED": wire.FeatureCacheWatchRetained, "COUNTERS": wire.FeatureCounters,
	"IDEMPOTENT_PRODUCER": wire.FeatureIdempotentProducer, "CACHE_SHARDS": wire.FeatureCacheShards, "ERROR_CODES": wire.FeatureErrorCodes,
	"SHARD_MOVED": wire.FeatureShardMoved, "UNSUPPORTED": wire.FeatureUnsupported, "SEQUENCE_REUSED": wire.FeatureSequenceReused,
	"PUBLISH_PIPELINE": wire.FeaturePublishPipeline, "ATOMIC_COMMIT": wire.FeatureAtomicCommit, "STREAM_PUBLISH_WINDOW": wire.FeatureStreamPublishWindow,
	"SHARD_OWNERS": wire.FeatureShardOwners, "ACK_ON_COMMIT": wire.FeatureAckOnCommit, "GROUP_CONSUMER": wire.FeatureGroupConsumer,
	"SUBSCRIPTION_LAGGED": wire.FeatureSubscriptionLagged, "GROUP_SKIPPED": wire.FeatureGroupSkipped, "GROUP_PUBLISHER": wire.FeatureGroupPublisher,
	"GROUP_ADMIN": wire.FeatureGroupAdmin, "CACHE_CONDITIONAL": wire.FeatureCacheConditional, "RECORD_TIMESTAMPS": wire.FeatureRecordTimestamps,
	"GROUP_CLAIM_CONTROL": wire.FeatureGroupClaimControl, "PUBLISH_CONDITIONAL": wire.FeaturePublishConditional, "STREAM_READ": wire.FeatureStreamRead,
	"SUBSCRIBE_QUEUE": wire.FeatureSubscribeQueue, "EXTENDED": wire.FeatureExtended,
}

func TestTheTableOfFeaturesIsTheCodecsAndSaysWhatThisBrokerOffers(t *testing.T) {
	rows := protocol(t).table(t, "bit", "name", "gate", "offered").rows
	if len(rows) != 32 {
		t.Errorf("the table has %d features, the word has 32", len(rows))
	}
	ephemeral, durable := sessionactor.EphemeralOffer().Features, sessionactor.DurableOffer().Features
	for _, row := range rows {
		bit := wire.Features(hexNumber(t, row[0]))
		if features[row[1]] != bit || bit == 0 {
			t.Errorf("%s is %s in the table and 0x%08x in the codec", row[1], row[0], uint32(features[row[1]]))
		}
		want := "no"
		switch {
		case ephemeral.Has(bit):
			want = "yes"
		case durable.Has(bit):
			want = "with storage"
		}
		if row[3] != want {
			t.Errorf("%s: the table says that it is offered: %s, and the broker says %s", row[1], row[3], want)
		}
	}
}

func TestTheTableOfCodesIsTheCodecs(t *testing.T) {
	rows := protocol(t).table(t, "number", "code", "class").rows
	if len(rows) != 15 {
		t.Errorf("the table has %d codes, there are 15", len(rows))
	}
	for i, row := range rows {
		c := wire.Code(hexNumber(t, row[0]))
		if int(c) != i+1 || words(row[1])[0] != c.String() || row[2] != c.DefaultRetry().String() {
			t.Errorf("row %d is %q, and the codec says %d, %s, %s", i+1, row[:3], c, c, c.DefaultRetry())
		}
	}
}

func TestTheTableOfClassesIsTheCodecs(t *testing.T) {
	rows := protocol(t).table(t, "class", "byte").rows
	if len(rows) != 5 {
		t.Errorf("the table has %d classes, there are 5", len(rows))
	}
	for _, row := range rows {
		if r, ok := wire.ParseRetry(words(row[0])[0]); !ok || uint64(r) != hexNumber(t, row[1]) {
			t.Errorf("%s is %s in the table and %d in the codec", row[0], row[1], r)
		}
	}
}

func TestTheTableOfRequestsSaysWhatThisBrokerServes(t *testing.T) {
	named := map[string]bool{}
	for _, row := range protocol(t).table(t, "request", "served").rows {
		for _, typ := range words(row[0]) {
			named[typ] = true
			kind := wire.KindOfType(typ)
			want := "not in this version"
			switch {
			case sessionactor.EphemeralOffer().Serves(kind):
				want = "yes"
			case sessionactor.DurableOffer().Serves(kind):
				want = "with storage"
			}
			if kind == wire.KindUnknown || row[1] != want || kind.Served() != (want != "not in this version") {
				t.Errorf("%s: the table says %q, the broker %q, and the codec that it is known %v, served %v", typ, row[1], want, kind != wire.KindUnknown, kind.Served())
			}
		}
	}
	for k := wire.KindAuth; int(k) < wire.RequestKinds; k++ {
		if !named[k.String()] {
			t.Errorf("the table does not name %s", k)
		}
	}
}

func TestTheReasonsOfThePageAreTheCodecs(t *testing.T) {
	want := map[string]string{
		wire.ReasonPublishQueueFull: "overloaded", wire.ReasonTenantQuota: "overloaded", wire.ReasonNotAssigned: "shard_unavailable",
		wire.ReasonOwnerUnavailable: "shard_unavailable", wire.ReasonNotReady: "shard_unavailable", wire.ReasonStale: "shard_unavailable",
		wire.ReasonFenced: "shard_unavailable", wire.ReasonMoving: "shard_unavailable", wire.ReasonRegionNotRoutable: "shard_unavailable",
		wire.ReasonRequestsWaiting: "overloaded", wire.ReasonWatchSnapshots: "overloaded", wire.ReasonDiskStalled: "storage",
	}
	n := 0
	for _, row := range protocol(t).table(t, "reason", "of").rows {
		for _, reason := range words(row[0]) {
			n++
			if want[reason] != row[1] {
				t.Errorf("%s is a reason of %s in the table and of %q in the codec", reason, row[1], want[reason])
			}
		}
	}
	if n != len(want) {
		t.Errorf("the table has %d reasons, want %d", n, len(want))
	}
}

func TestTheTableOfShardsIsComputedLikeTheBrokers(t *testing.T) {
	for _, row := range protocol(t).table(t, "key", "F(H(key))").rows {
		key := []byte(nil)
		if w := words(row[0]); len(w) > 0 {
			key = []byte(w[0])
		}
		got := []string{row[0], fmt.Sprintf("%016x", wire.KeyHash(key))}
		for _, shards := range []uint32{4, 12, 64} {
			got = append(got, fmt.Sprint(wire.RoutingModulo.Shard(key, true, shards)))
		}
		got = append(got, fmt.Sprint(wire.RoutingJumpHash.Shard(key, true, 12)))
		if strings.Join(got, "|") != strings.Join(row, "|") {
			t.Errorf("the row is %q, want %q", row, got)
		}
	}
}

func TestTheTableOfLimitsIsTheBrokers(t *testing.T) {
	want := map[string]int{
		"payload of a frame":                       wire.MaxPayload,
		"payload of a frame before authentication": wire.MaxPreauthPayload,
		"token": wire.MaxTokenBytes,
		"tenant, namespace, stream, cache and group names": wire.MaxNameBytes,
		"routing key":                                         wire.MaxKeyBytes,
		"cache key":                                           wire.MaxCacheKeyBytes,
		"publisher on an event batch":                         wire.MaxPublisherBytes,
		"consumer of a group":                                 wire.MaxConsumerBytes,
		"records that a poll hands out":                       wire.MaxGroupRecords,
		"open requests of a stream (`publish_window`)":        wire.PublishWindow,
		"bytes of a connection's requests without an outcome": wire.ConnPublishBytes,
		"streams of a connection, each direction":             transport.MaxStreams,
		"streams open before the first authenticated":         wire.PreauthStreamsMax,
		"milliseconds to authenticate":                        wire.AuthTimeoutMillis,
		"subscriptions of a connection, of one principal":     wire.MaxSubscriptionsPerConn,
		"subscriptions of a connection, of all":               wire.MaxSubscriptionsPerConnTotal,
		"subscriptions and watches of a broker":               wire.NodeSubscriptions,
		"events in a frame":                                   wire.EventBatchMaxEvents,
		"bytes of events in a frame, unless it is one event":  wire.EventBatchMaxBytes,
		"batches in a subscriber's window":                    wire.SubscriberQueueCapacity,
		"batches in it at most, on request":                   wire.SubscriberQueueCapacityMax,
		"bytes in a subscriber's window":                      wire.SubscriberQueueBytes,
		"shards in `shard_owners_view`":                       wire.MaxShardOwners,
		"depth of JSON":                                       wire.MaxJSONDepth,
		"prose of an error":                                   wire.MaxErrorTextBytes,
	}
	rows := protocol(t).table(t, "what", "limit").rows
	for _, row := range rows {
		n, known := want[row[0]]
		if !known || strconv.Itoa(n) != row[1] {
			t.Errorf("%s is %s in the table, want %d", row[0], row[1], n)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("the table has %d limits, want %d", len(rows), len(want))
	}
}

func TestTheTableOfCloseCodesIsTheBrokers(t *testing.T) {
	want := []uint64{
		uint64(transport.CloseShutdown), uint64(transport.CloseAuthTimeout), uint64(transport.CloseTooManyStreams),
		uint64(transport.CloseCipherSuite), uint64(transport.CloseOverload), uint64(transport.CloseInternal),
	}
	rows := protocol(t).table(t, "close code").rows
	for i, row := range rows {
		if i >= len(want) || hexNumber(t, row[0]) != want[i] {
			t.Errorf("row %d is %s, want the codes %d", i, row[0], want)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("the table has %d codes, want %d", len(rows), len(want))
	}
}
