package id

import "testing"

func TestOffsetsNeverCountBackwards(t *testing.T) {
	if got := Offset(7).Since(3); got != 4 {
		t.Fatalf("7 since 3 = %d, want 4", got)
	}
	if got := Offset(3).Since(7); got != 0 {
		t.Fatalf("3 since 7 = %d, want 0", got)
	}
	if got := Offset(3).Add(4); got != 7 {
		t.Fatalf("3 + 4 = %d, want 7", got)
	}
}

func TestOnlyTheZeroLogIDIsZero(t *testing.T) {
	if !(LogID{}).IsZero() || (LogID{15: 1}).IsZero() {
		t.Fatal("IsZero must be true for the zero id alone")
	}
	if got := (LogID{0: 0xab}).String(); got != "ab000000000000000000000000000000" {
		t.Fatalf("String = %q", got)
	}
}
