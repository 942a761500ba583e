package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

// mission 288, mission 290: one bound at a time, unset is the broker's, zero is refused.
//
// matrix F6
func TestRetentionPatchKeepsSetsAndHandsBack(t *testing.T) {
	base := mustRecord(t, `{"stream":"s","retention":{"max_age_seconds":10,"max_size_bytes":20}}`)
	for _, c := range []struct {
		patch string
		want  Retention
	}{
		{`{}`, Retention{10, 20}},
		{`{"retention":null}`, Retention{10, 20}},
		{`{"retention":{}}`, Retention{10, 20}},
		{`{"retention":{"max_age_seconds":5}}`, Retention{5, 20}},
		{`{"retention":{"max_size_bytes":null}}`, Retention{10, 0}},
		{`{"retention":{"max_age_seconds":null,"max_size_bytes":7}}`, Retention{0, 7}},
	} {
		var p StreamPatch
		if err := json.Unmarshal([]byte(c.patch), &p); err != nil {
			t.Fatal(err)
		}
		got, err := p.Apply(base)
		if err != nil || got.Retention != c.want || p.Validate() != nil {
			t.Errorf("%s gives %+v, %v", c.patch, got.Retention, err)
		}
		text, err := json.Marshal(p)
		var again StreamPatch
		if err != nil || json.Unmarshal(text, &again) != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if second, err := again.Apply(base); err != nil || second != got {
			t.Errorf("%s rendered as %s means something else", c.patch, text)
		}
	}
	for _, zero := range []string{`{"retention":{"max_age_seconds":0}}`, `{"retention":{"max_size_bytes":0}}`} {
		var p StreamPatch
		if err := json.Unmarshal([]byte(zero), &p); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Apply(base); !errors.Is(err, ErrInvalid) || p.Validate() == nil {
			t.Errorf("%s is accepted", zero)
		}
	}
	for _, odd := range []string{`{"retention":{"max_age_seconds":-1}}`, `{"retention":{"max_age_seconds":1.5}}`, `{"retention":{"max_size_bytes":"9"}}`} {
		var p StreamPatch
		if err := json.Unmarshal([]byte(odd), &p); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", odd, err)
		}
	}
}

func TestPatchTouchesNothingElse(t *testing.T) {
	base := mustRecord(t, `{"stream":"s","kind":"Queue","shards":3,"region":"eu","routing":"jump_hash"}`)
	p := StreamPatch{Consistency: ptr(ConsistencyQuorum), Delivery: ptr(DeliveryAtMostOnce), Compress: ptr(true)}
	got, err := p.Apply(base)
	want := base
	want.Consistency, want.Delivery, want.Compress = ConsistencyQuorum, DeliveryAtMostOnce, true
	if err != nil || got != want {
		t.Fatalf("got %+v, %v", got, err)
	}
	if (StreamPatch{Delivery: ptr(Delivery("x"))}).Validate() == nil {
		t.Fatal("an unknown delivery is accepted")
	}
}

// What was acknowledged as durable stays so: there is no patch that lets a stream forget its records.
func TestDurabilityIsRefusedToChangeAndMayBeNamed(t *testing.T) {
	for _, durable := range []bool{false, true} {
		base := mustRecord(t, fmt.Sprintf(`{"stream":"s","durable":%v,"routing":"modulo"}`, durable))
		if got, err := (StreamPatch{Durable: ptr(durable)}).Apply(base); err != nil || got != base {
			t.Errorf("durable %v named: %+v, %v", durable, got, err)
		}
		p := StreamPatch{Durable: ptr(!durable)}
		if _, err := p.Apply(base); fieldOf(err) != "durable" {
			t.Errorf("durable %v changed: %v", durable, err)
		}
		if err := p.Validate(); err != nil { // some stream is so
			t.Errorf("validate durable %v: %v", !durable, err)
		}
	}
}

func TestCacheSpecAndPatch(t *testing.T) {
	c, err := CacheSpec{Cache: "c"}.Record("t", "n", 3)
	if err != nil || c != (Cache{TenantID: "t", Namespace: "n", Cache: "c", Incarnation: 3, Shards: 1, ReplicationFactor: 1, Consistency: ConsistencyLeader}) {
		t.Fatalf("got %+v, %v", c, err)
	}
	if m, err := (CacheSpec{Cache: "c", InMemory: ptr(true)}).Record("t", "n", 3); err != nil || !m.InMemory {
		t.Fatalf("in memory: %+v, %v", m, err)
	}
	if c, err = (CachePatch{DisplayName: ptr("Sessions")}).Apply(c); err != nil || c.DisplayName != "Sessions" {
		t.Fatalf("patched to %+v, %v", c, err)
	}
	if _, err := (CachePatch{DisplayName: ptr("\x01")}).Apply(c); !errors.Is(err, ErrInvalid) {
		t.Fatalf("a control character is accepted: %v", err)
	}
	for _, s := range []CacheSpec{{Cache: "*"}, {Cache: "c", TenantID: "x"}, {Cache: "c", Namespace: "x"}, {Cache: "c", Shards: ptr[uint32](0)},
		{Cache: "c", ReplicationFactor: ptr[uint32](16)}, {Cache: "c", Consistency: ptr(Consistency("x"))}, {Cache: "c", DisplayName: "\n"}} {
		if _, err := s.Record("t", "n", 3); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v is accepted: %v", s, err)
		}
	}
}

func TestScopeSpecs(t *testing.T) {
	if tn, err := (TenantSpec{TenantID: "t", DisplayName: "T"}).Record(); err != nil || tn != (Tenant{TenantID: "t", DisplayName: "T"}) {
		t.Errorf("tenant %+v, %v", tn, err)
	}
	if n, err := (NamespaceSpec{Namespace: "n"}).Record("t"); err != nil || n != (Namespace{TenantID: "t", Namespace: "n"}) {
		t.Errorf("namespace %+v, %v", n, err)
	}
	for _, err := range []error{
		second((TenantSpec{TenantID: "/", DisplayName: "T"}).Record()),
		second((NamespaceSpec{Namespace: "n", TenantID: "u"}).Record("t")),
		second((NamespaceSpec{Namespace: ""}).Record("t")),
		second((NamespaceSpec{Namespace: "n"}).Record("")),
		second((NamespaceSpec{Namespace: "n", DisplayName: "\r"}).Record("t")),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("accepted, or another error: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
