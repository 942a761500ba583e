package model

import (
	"bytes"
	"io"
	"slices"
	"testing"
)

func TestIncarnationIsNeverZeroAndFitsADouble(t *testing.T) {
	zeroThenOnes := io.MultiReader(bytes.NewReader(make([]byte, 8)), bytes.NewReader(bytes.Repeat([]byte{0xff}, 8)))
	got, err := NewIncarnation(zeroThenOnes)
	if err != nil || got != 1<<53-1 {
		t.Fatalf("drew %d, %v", got, err)
	}
	if Incarnation(float64(got)) != got {
		t.Fatal("a double does not hold the largest incarnation")
	}
	if _, err := NewIncarnation(bytes.NewReader([]byte{1, 2, 3})); err == nil {
		t.Fatal("a source that runs dry gave an incarnation")
	}
	if _, err := NewIncarnation(bytes.NewReader(make([]byte, 1024))); err == nil {
		t.Fatal("a source of zeros gave an incarnation")
	}
}

func TestNamesOrderByTenantNamespaceName(t *testing.T) {
	names := []ResourceName{{"b", "a", "a"}, {"a", "b", "a"}, {"a", "a", "b"}, {"a", "a-", "a"}, {"a", "a", "a"}}
	slices.SortFunc(names, ResourceName.Compare)
	want := []ResourceName{{"a", "a", "a"}, {"a", "a", "b"}, {"a", "a-", "a"}, {"a", "b", "a"}, {"b", "a", "a"}}
	if !slices.Equal(names, want) {
		t.Fatalf("sorted to %v", names)
	}
	if got := want[1].String(); got != "a/a/b" {
		t.Fatalf("rendered as %s", got)
	}
}

func TestEveryKindHasASingularAndARecord(t *testing.T) {
	records := []Record{Tenant{TenantID: "t"}, Namespace{TenantID: "t", Namespace: "n"},
		Stream{TenantID: "t", Namespace: "n", Stream: "s"}, Cache{TenantID: "t", Namespace: "n", Cache: "c"}}
	for i, kind := range Kinds() {
		if records[i].RecordKind() != kind || kind.Singular()+"s" != string(kind) || records[i].Key().Tenant != "t" {
			t.Errorf("kind %s, singular %s, record %+v", kind, kind.Singular(), records[i])
		}
	}
	if got := Kind("nodes").Singular(); got != `record of unknown kind "nodes"` {
		t.Errorf("unknown kind is called %s", got)
	}
}
