package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

// small is a load that fills a window within half a second and needs next to nothing of the machine. Those that keep up have a window of
// a minute, so that they lose nothing while other tests have the machine. Its phases are so many times longer than they need to be.
func small(p policy, longer int) []string {
	millis := effort.Size("slow_consumer_millis") * longer
	if !effort.Full() {
		millis /= 2
	}
	return []string{
		"--rate=100", "--batch=1", "--payload=1024", "--queue-capacity=20", "--others-capacity=4096", "--subscribers=3", "--no-tui",
		"--policy=" + string(p), fmt.Sprintf("--duration=%dms", millis),
	}
}

// shown runs the demo, which must end with zero, and returns its verdict. What a busy machine cannot tell is asked again, and so are rates, a few
// times: that machine may have served one and not the other, and who is held up is held up each time. Anything else that is broken is not.
func shown(t *testing.T, p policy, longer int) (verdict string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	again := func(code, slow int) bool {
		return code == int(unclear) || code == int(broken) && slow < 5 && onlySlow(out.String())
	}
	code := int(unclear)
	for slow := 0; ctx.Err() == nil && again(code, slow); {
		out.Reset()
		errs.Reset()
		if code = run(ctx, small(p, longer), &out, &errs, false); code == int(broken) {
			slow++
		}
	}
	if code != 0 || errs.Len() > 0 {
		t.Fatalf("exit code %d, %s\n%s", code, &errs, &out)
	}
	for _, want := range []string{"\n" + string(p) + ": ", "all read", "one stops", "it reads again", "it reads a fifth"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
	verdicts := strings.Split(out.String(), "\nholds ")
	if len(verdicts) != 2 {
		t.Fatalf("%d verdicts, want 1:\n%s", len(verdicts)-1, &out)
	}
	return strings.TrimSpace(verdicts[1])
}

// onlySlow reports whether rates are all that is broken.
func onlySlow(out string) bool {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "BROKEN") && !strings.Contains(line, "of their rate while") {
			return false
		}
	}
	return strings.Contains(out, "BROKEN")
}

// mission 217, mission 219, mission 221, mission 349
func TestBothPoliciesKeepTheirPromiseAndTheDemoEndsWithZero(t *testing.T) {
	t.Run(string(dropNew), func(t *testing.T) {
		t.Parallel()
		filled(t, dropNew, func(verdict string) error {
			var lost, published int
			if n, err := fmt.Sscanf(verdict, "the slow subscriber lost %d of %d records", &lost, &published); n != 2 || lost == 0 || lost >= published {
				return fmt.Errorf("the slow subscriber lost %d of %d records, %v: the load does not fill its window", lost, published, err)
			}
			return nil
		})
	})
	t.Run(string(block), func(t *testing.T) {
		t.Parallel()
		filled(t, block, func(verdict string) error {
			var published, before, after int
			const fell = "nobody lost any of %d records; publishing fell from %d to %d a second"
			if n, err := fmt.Sscanf(verdict, fell, &published, &before, &after); n != 3 || after > before*9/10 {
				return fmt.Errorf("publishing went from %d to %d, %v: nobody waited", before, after, err)
			}
			return nil
		})
	})
}

// filled runs the demo until its verdict tells of a window that was full, with longer phases where the machine is too busy to fill one.
func filled(t *testing.T, p policy, wrong func(verdict string) error) {
	t.Helper()
	for longer := 1; ; longer *= 2 {
		err := wrong(shown(t, p, longer))
		if err == nil {
			return
		}
		if longer > 4 {
			t.Fatal(err)
		}
	}
}

// A demo whose claims can't fail would show nothing: a broker that drops under the name of block is found out. A machine that is too busy to fill a
// window in one phase gets a longer one.
func TestABrokerThatBreaksItsPromiseIsFoundOut(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for o := (options{rate: 200, subscribers: 2, payload: 1024, batch: 1, queueCapacity: 10, duration: 600 * time.Millisecond}); ; o.duration *= 2 {
		l, err := openWith(ctx, o, func(n *node.Options) {
			n.Limits = o.limits(block)
			n.Limits.Overflow = storage.DropNew
		})
		if err != nil {
			t.Fatal(err)
		}
		l.bound = o.memoryBound(block)
		var out bytes.Buffer
		s := newScreen(&out, block, false)
		r, err := l.experiment(ctx, block, s)
		if err != nil {
			t.Fatal(err)
		}
		v := s.verdict(r)
		if v == broken && strings.Contains(out.String(), "under block") {
			return
		}
		if o.duration > 5*time.Second {
			t.Fatalf("nothing was found:\n%s", &out)
		}
	}
}

func TestInterruptingTheDemoEndsIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var out, errs bytes.Buffer
	go func() { ended <- run(ctx, []string{"--duration=60s", "--policy=drop_new"}, &out, &errs, false) }()
	cancel()
	select {
	case code := <-ended:
		if code != 1 || !strings.Contains(errs.String(), "canceled") {
			t.Errorf("exit code %d, %q", code, &errs)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("it did not end")
	}
}

func TestTheMemoryBoundIsThatOfTheWindowsAndNotOfTheLoad(t *testing.T) {
	o := options{rate: 20000, subscribers: 3, payload: 256, batch: 10, queueCapacity: 512, duration: time.Second}
	bound, size := o.memoryBound(dropNew), o.batchBytes()
	if least := (64 + 3*512) * size; bound < least || bound > least+least/4 {
		t.Errorf("the bound is %d, want little more than %d", bound, least)
	}
	if more := o.memoryBound(block) - bound; more != 256*size {
		t.Errorf("under block %d bytes may wait, want the 256 batches of a publisher", more)
	}
	longer := o
	longer.duration, longer.rate = time.Hour, 1_000_000
	if longer.memoryBound(dropNew) != bound {
		t.Error("the bound depends on the load")
	}
	o.payload = 1 << 20
	if l := o.limits(dropNew); l.ReaderBytes != 3*o.batchBytes() {
		t.Errorf("windows of batches that are larger than any window may hold %d, want one batch each", l.ReaderBytes)
	}
}
