package fair

import (
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
)

// window is how long one measurement lasts. Those with and without the other tenant alternate, so that whatever else the machine does
// hits both.
func window() time.Duration {
	if effort.Full() {
		return 500 * time.Millisecond
	}
	return 200 * time.Millisecond
}

// asked is what the single tenant asks for, in publishes a second. It is far below saturation: a shard alone does a hundred times as
// many on an idle core. And it is far more than it would get if shards took turns whoever they belong to: one of 1001 turns of at most
// 64 publishes, at some thousand turns a second, are a few hundred.
const asked = 5000

// windows is how many there are of each kind in a try.
func windows() int {
	if effort.Raced && !effort.Full() {
		return 1
	}
	return max(3, effort.Size("fair_seconds")*int(time.Second/(2*window())))
}

// again says whether what looks bad is to be measured some more: the machine may have been busy with something else. Since all that was measured
// counts, what is true comes out in the end.
func again() (more func() bool) {
	const enough = time.Minute
	began := time.Now()
	return func() bool { return time.Since(began) < enough }
}

// steady sends at a fixed rate for one window, and returns the share of it that was done by its end.
func (h *house) steady() float64 {
	h.t.Helper()
	p := &publisher{h: h, shard: h.one}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for now := began; now.Sub(began) < window(); now = <-tick.C {
		for due := int64(now.Sub(began).Seconds() * asked); p.sent.Load() < due; {
			p.send()
		}
	}
	sent, done := p.sent.Load(), p.done.Load()
	p.settle()
	if n := p.refused.Load(); n > 0 {
		done -= n
		h.t.Logf("%d of %d were refused: the queue was full", n, sent)
	}
	return float64(done) / (asked * window().Seconds())
}

// saturated keeps as many publishes under way as two turns take, for one window, and returns how many were done in a second.
func (h *house) saturated() float64 {
	h.t.Helper()
	p := &publisher{h: h, shard: h.one}
	p.again.Store(true)
	began := time.Now()
	for range 128 {
		p.send()
	}
	<-time.After(window())
	done, took := p.done.Load(), time.Since(began)
	p.again.Store(false)
	p.settle()
	if n := p.refused.Load(); n > 0 {
		h.t.Errorf("%d publishes were refused", n)
	}
	return float64(done) / took.Seconds()
}

// mission 208: a tenant with one shard that asks for less than its share keeps at least 80 % of the rate it has alone, beside a tenant
// with a thousand shards that are all busy.
func TestOneShardKeepsItsRateBesideAThousandBusyOnesInRealTime(t *testing.T) {
	h := open(t)
	var alone, beside, theirs []float64
	var a, b float64
	for more := again(); ; {
		for range windows() {
			alone = append(alone, h.steady())
			n := h.besideMany(func() { beside = append(beside, h.steady()) })
			theirs = append(theirs, float64(n)/window().Seconds())
		}
		if a, b = median(alone), median(beside); b >= 0.8*a || !more() {
			break
		}
	}
	t.Logf("of %d publishes a second, %.1f %% are done in time alone, %.1f %% beside %d busy shards, which get %.0f a second done",
		asked, 100*a, 100*b, manyShards, median(theirs))
	if b < 0.8*a {
		t.Errorf("beside the busy tenant the rate falls to %.1f %% of that alone, want at least 80 %%", 100*b/a)
	}
}

// With both saturated, the single shard gets what is its own: turns by turn, and not one in a thousand and one. How much of its solo rate
// that is depends on the machine, and is reported. By bytes the two tenants have equal shares, but a shard takes one turn at a time: of
// N executors it keeps one busy at most, while the other tenant keeps all of them busy. On C cores, fewer than N, that is C/N of a core
// where it had a whole one alone; the caches and the collector are shared, too.
func TestASaturatedShardIsServedInTurnBesideAThousandBusyOnes(t *testing.T) {
	h := open(t)
	var alone, beside, theirs []float64
	var fair float64
	for more := again(); ; {
		for range windows() {
			alone = append(alone, h.saturated())
			n := h.besideMany(func() { beside = append(beside, h.saturated()) })
			theirs = append(theirs, float64(n)/window().Seconds())
		}
		if fair = median(beside) / median(theirs); fair >= 0.1 || !more() {
			break
		}
	}
	t.Logf("saturated, the single shard gets %.0f publishes a second done alone and %.0f (%.0f %%) beside %d busy shards, which get %.0f done",
		median(alone), median(beside), 100*median(beside)/median(alone), manyShards, median(theirs))
	if fair < 0.1 {
		t.Errorf("the single shard got %.3f of what the thousand got, want at least a tenth", fair)
	}
}
