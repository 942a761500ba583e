package sessioncore

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// However a page is cut, and wherever its client stops taking: it has each byte once and in its place, and each record is counted once.
func TestAPageInPiecesReachesItsClientOnceAndIsCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 20), 1, 10).Draw(t, "page")
		counted := make([]int, len(page))
		var p Pieces
		var got []byte
		attempt := func() (piece []byte) {
			p.Again()
			for i, b := range page {
				if p.Once() {
					counted[i]++
				}
				for b = p.Rest(b); len(b) > 0; {
					n := rapid.IntRange(1, len(b)).Draw(t, "bytes")
					if !rapid.Bool().Draw(t, "taken at once") {
						return b[:n]
					}
					got = append(got, b[:n]...)
					p.Gave(n)
					b = b[n:]
				}
			}
			return nil
		}
		for piece := attempt(); piece != nil; piece = attempt() {
			n := rapid.IntRange(1, len(piece)).Draw(t, "bytes of the piece")
			got = append(got, piece[:n]...)
			p.Took(n)
			if !p.Begun() {
				t.Fatal("it has begun")
			}
		}
		if !bytes.Equal(got, bytes.Join(page, nil)) {
			t.Fatalf("the client has %v of %v", got, page)
		}
		for i, n := range counted {
			if n != 1 {
				t.Fatalf("record %d is counted %d times", i, n)
			}
		}
	})
}
