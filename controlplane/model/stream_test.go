package model

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

func ptr[T any](v T) *T { return &v }

func mustRecord(t *testing.T, body string) Stream {
	t.Helper()
	var spec StreamSpec
	if err := json.Unmarshal([]byte(body), &spec); err != nil {
		t.Fatal(err)
	}
	s, err := spec.Record("t1", "pay", 7)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mission 273: a stream created with no option is ephemeral.
func TestStreamDefaults(t *testing.T) {
	want := Stream{TenantID: "t1", Namespace: "pay", Stream: "orders", Incarnation: 7, Kind: StreamKindStream, Shards: 1,
		ReplicationFactor: 1, Consistency: ConsistencyLeader, Delivery: DeliveryAtLeastOnce}
	nulls := `{"stream":"orders","kind":null,"shards":null,"replication_factor":null,"retention":null,"consistency":null,
		"delivery":null,"durable":null,"region":null,"routing":null,"compress":null}`
	for _, body := range []string{`{"stream":"orders"}`, nulls, `{"stream":"orders","retention":{"max_age_seconds":null}}`} {
		if got := mustRecord(t, body); got != want {
			t.Errorf("%s gives %+v", body, got)
		}
	}
}

// mission 297: every field of a stream definition has its place.
func TestStreamTakesEveryField(t *testing.T) {
	got := mustRecord(t, `{"tenant_id":"t1","namespace":"pay","stream":"orders","kind":"Queue","shards":1024,"replication_factor":15,
		"retention":{"max_age_seconds":3600,"max_size_bytes":1048576},"consistency":"Quorum","delivery":"AtMostOnce","durable":true,
		"region":"eu-1","routing":"jump_hash","compress":true}`)
	want := Stream{TenantID: "t1", Namespace: "pay", Stream: "orders", Incarnation: 7, Kind: StreamKindQueue, Shards: 1024,
		ReplicationFactor: 15, Retention: Retention{3600, 1 << 20}, Consistency: ConsistencyQuorum, Delivery: DeliveryAtMostOnce,
		Durable: true, Region: "eu-1", Routing: RoutingJumpHash, Compress: true}
	if got != want {
		t.Fatalf("got %+v", got)
	}
}

func TestEnumsAreAcceptedInEitherCaseAndStoredCanonically(t *testing.T) {
	got := mustRecord(t, `{"stream":"s","kind":"queue","consistency":"QUORUM","delivery":"atmostonce","routing":"JUMP_HASH"}`)
	if got.Kind != StreamKindQueue || got.Consistency != ConsistencyQuorum || got.Delivery != DeliveryAtMostOnce || got.Routing != RoutingJumpHash {
		t.Fatalf("got %+v", got)
	}
	for _, body := range []string{`{"kind":"Log"}`, `{"consistency":"Strong"}`, `{"delivery":""}`, `{"routing":"modulo "}`} {
		var spec StreamSpec
		var field *FieldError
		if err := json.Unmarshal([]byte(body), &spec); !errors.As(err, &field) || !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestStreamRequestsOutOfBoundsAreRefusedByField(t *testing.T) {
	for _, c := range []struct {
		field string
		spec  StreamSpec
	}{
		{"stream", StreamSpec{Stream: "a/b"}},
		{"stream", StreamSpec{}},
		{"tenant_id", StreamSpec{Stream: "s", TenantID: "t2"}},
		{"namespace", StreamSpec{Stream: "s", Namespace: "other"}},
		{"shards", StreamSpec{Stream: "s", Shards: ptr[uint32](0)}},
		{"shards", StreamSpec{Stream: "s", Shards: ptr[uint32](1025)}},
		{"replication_factor", StreamSpec{Stream: "s", ReplicationFactor: ptr[uint32](0)}},
		{"replication_factor", StreamSpec{Stream: "s", ReplicationFactor: ptr[uint32](16)}},
		{"retention.max_age_seconds", StreamSpec{Stream: "s", Retention: &RetentionSpec{MaxAgeSeconds: ptr[uint64](0)}}},
		{"retention.max_size_bytes", StreamSpec{Stream: "s", Retention: &RetentionSpec{MaxSizeBytes: ptr[uint64](0)}}},
		{"retention.max_age_seconds", StreamSpec{Stream: "s", Retention: &RetentionSpec{MaxAgeSeconds: ptr[uint64](RetentionSecondsMax + 1)}}},
		{"retention.max_size_bytes", StreamSpec{Stream: "s", Retention: &RetentionSpec{MaxSizeBytes: ptr[uint64](1 << 63)}}},
		{"region", StreamSpec{Stream: "s", Region: ptr("")}},
		{"region", StreamSpec{Stream: "s", Region: ptr("eu>us")}},
		{"kind", StreamSpec{Stream: "s", Kind: ptr(StreamKind("queue"))}}, // records hold canonical spellings only
		{"consistency", StreamSpec{Stream: "s", Consistency: ptr(Consistency(""))}},
		{"delivery", StreamSpec{Stream: "s", Delivery: ptr(Delivery("Maybe"))}},
		{"routing", StreamSpec{Stream: "s", Routing: ptr(Routing("ring"))}},
	} {
		_, err := c.spec.Record("t1", "pay", 7)
		if got := fieldOf(err); got != c.field || !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: field %q (%v), want %q", c.spec, got, err, c.field)
		}
	}
	if _, err := (StreamSpec{Stream: "s"}).Record("t1", "pay", 0); fieldOf(err) != "incarnation" {
		t.Errorf("incarnation zero: %v", err)
	}
	if _, err := (StreamSpec{Stream: "s"}).Record("t*", "pay", 7); fieldOf(err) != "tenant_id" {
		t.Errorf("odd tenant: %v", err)
	}
	if _, err := (StreamSpec{Stream: "s"}).Record("t", "", 7); fieldOf(err) != "namespace" {
		t.Errorf("no namespace: %v", err)
	}
}

func fieldOf(err error) string {
	var field *FieldError
	var name *NameError
	switch {
	case errors.As(err, &field):
		return field.Field
	case errors.As(err, &name):
		return name.Field
	}
	return ""
}

func TestStreamJSONLeavesDefaultsOutAndComesBack(t *testing.T) {
	s := mustRecord(t, `{"stream":"orders","routing":"modulo"}`)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"tenant_id":"t1","namespace":"pay","stream":"orders","incarnation":7,"kind":"Stream","shards":1,"replication_factor":1,` +
		`"retention":{},"consistency":"Leader","delivery":"AtLeastOnce","durable":false}`
	if string(text) != want {
		t.Fatalf("rendered as %s", text)
	}
	for _, in := range []Stream{s, mustRecord(t, `{"stream":"x","routing":"jump_hash","region":"eu","compress":true,"retention":{"max_age_seconds":5}}`)} {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out Stream
		if err := json.Unmarshal(text, &out); err != nil || out != in {
			t.Errorf("%s came back as %+v, %v", text, out, err)
		}
	}
	var later Stream // a record of a newer control plane
	if err := json.Unmarshal([]byte(want[:len(want)-1]+`,"colour":"red"}`), &later); err != nil || later != s {
		t.Errorf("a record with an unknown field: %+v, %v", later, err)
	}
	if err := json.Unmarshal([]byte(`{"consistency":"Strict"}`), &later); !errors.Is(err, ErrInvalid) {
		t.Errorf("a record with an unknown consistency is read: %v", err)
	}
}

func TestDifferencesNameEveryConfiguredField(t *testing.T) {
	a := mustRecord(t, `{"stream":"s","routing":"modulo"}`)
	b := mustRecord(t, `{"stream":"s","kind":"Queue","shards":2,"replication_factor":3,"retention":{"max_age_seconds":1},
		"consistency":"Quorum","delivery":"AtMostOnce","durable":true,"region":"eu","routing":"jump_hash","compress":true}`)
	want := []string{"kind", "shards", "replication_factor", "retention", "consistency", "delivery", "durable", "region", "routing", "compress"}
	if got := a.Differences(b); !slices.Equal(got, want) {
		t.Errorf("differences %v", got)
	}
	b = a
	b.Incarnation, b.Routing, b.Logs = 99, "", "x"
	if got := a.Differences(b); len(got) != 0 {
		t.Errorf("an incarnation, a log or an unnamed routing differs: %v", got)
	}
	x := Cache{DisplayName: "a", Shards: 1, ReplicationFactor: 1, Consistency: ConsistencyLeader}
	y := Cache{DisplayName: "b", Shards: 2, ReplicationFactor: 2, Consistency: ConsistencyQuorum, Incarnation: 4, InMemory: true}
	if got := x.Differences(y); !slices.Equal(got, []string{"display_name", "shards", "replication_factor", "consistency", "in_memory"}) {
		t.Errorf("cache differences %v", got)
	}
	y = x
	y.Incarnation, y.Logs = 4, "x"
	if got := x.Differences(y); len(got) != 0 {
		t.Errorf("an incarnation or a log of a cache differs: %v", got)
	}
}
