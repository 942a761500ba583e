package simrt

import (
	"testing"

	"pgregory.net/rapid"
)

func TestOneChangedByteChangesTheHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "bytes")
		i := rapid.IntRange(0, len(p)-1).Draw(t, "at")
		q := append([]byte(nil), p...)
		q[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		var a, b, c, d Hash
		a.Bytes(p)
		b.Bytes(q)
		c.Text(string(p))
		d.Text(string(q))
		if a == b || c == d {
			t.Fatalf("%x and %x have the same hash", p, q)
		}
	})
}

func TestTheHashTellsHowThingsWereCut(t *testing.T) {
	var a, b Hash
	a.Text("ab")
	a.Text("c")
	b.Text("a")
	b.Text("bc")
	if a == b {
		t.Error("ab, c and a, bc have the same hash")
	}
	var c, d Hash
	c.Add(1, 2)
	d.Add(2, 1)
	if c == d {
		t.Error("1, 2 and 2, 1 have the same hash")
	}
}
