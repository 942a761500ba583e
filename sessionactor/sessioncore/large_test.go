package sessioncore

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever is taken and given, no scope keeps more than its limit, but for a page that is alone in its connection; and whoever is told no would exceed one.
func TestLargePagesStayWithinTheirLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type page struct{ conn, bytes int }
		const connMost, nodeMost = 1000, 2500
		l, conns, kept := NewLarge(LargeLimits{Conn: connMost, Node: nodeMost}), make([]LargeConn, 4), []page(nil)
		sum := func(conn int) (n, pages int) {
			for _, p := range kept {
				if conn < 0 || p.conn == conn {
					n, pages = n+p.bytes, pages+1
				}
			}
			return n, pages
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if len(kept) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(kept)-1).Draw(t, "page")
				l.Give(&conns[kept[i].conn], kept[i].bytes)
				kept = append(kept[:i], kept[i+1:]...)
			} else {
				p := page{rapid.IntRange(0, len(conns)-1).Draw(t, "connection"), rapid.IntRange(1, 3000).Draw(t, "bytes")}
				node, _ := sum(-1)
				conn, pages := sum(p.conn)
				fits := node+p.bytes <= nodeMost && (pages == 0 || conn+p.bytes <= connMost)
				if l.Take(&conns[p.conn], p.bytes) != fits {
					t.Fatalf("%d more beside %d of the node and %d of the connection: %v", p.bytes, node, conn, !fits)
				}
				if fits {
					kept = append(kept, p)
				}
			}
			if n, _ := sum(-1); n != l.Used() {
				t.Fatalf("%d bytes are kept, %d are counted", n, l.Used())
			}
		}
	})
}
