package crash

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/testkit"
)

// What is acknowledged stays, whenever the process is killed.
//
// mission 277, field case DUR-11 (streams), matrix A28
//
// matrix E22
func TestWhatWasAcknowledgedIsThereAfterEveryKill(t *testing.T) {
	const shards = 4
	kills := size("killed_daemons")
	d := newDaemon(t)
	d.CreateStream("ledger", shards)
	l := newLedger()
	p := l.publish(t, d, "ledger", 6, 200, keysOf(t, d.Connect(), "ledger", shards))
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	var slowest time.Duration
	for range kills {
		before := l.acknowledged()
		if !testkit.Eventually(t, "something is acknowledged after a restart", func() bool { return l.acknowledged() > before }) {
			break
		}
		testkit.After(time.Duration(r.IntN(150)) * time.Millisecond)
		d.Kill()
		slowest = max(slowest, d.Start())
	}
	p.stop()
	l.check(t, d, "ledger", shards)
	if l.acknowledged() == 0 || len(l.unknown) == 0 {
		t.Errorf("%d acknowledged, %d unknown: the kills met nothing", l.acknowledged(), len(l.unknown))
	}
	t.Logf("%d kills; the slowest start took %v", kills, slowest)
}
