package actors

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// awaitWaiting spins politely until n callers wait on c.
func awaitWaiting(t *testing.T, c *Credit, n int) {
	t.Helper()
	clock := RealClock()
	deadline := clock.Now().Add(patience)
	for c.Waiting() != n {
		if clock.Now().After(deadline) {
			t.Fatalf("%d wait, want %d", c.Waiting(), n)
		}
		done := make(chan struct{})
		go close(done)
		<-done
	}
}

// queueUp starts an Acquire that is sure to wait behind all others, and returns where its result comes.
func queueUp(t *testing.T, c *Credit, done <-chan struct{}, items, bytes int) <-chan error {
	got := make(chan error, 1)
	n := c.Waiting()
	go func() { got <- c.Acquire(done, items, bytes) }()
	awaitWaiting(t, c, n+1)
	return got
}

func TestCreditWakesExactlyWhoFitsInOrder(t *testing.T) {
	c := NewCredit(10, 100)
	if !c.TryAcquire(10, 50) {
		t.Fatal("empty credit refused")
	}
	big := queueUp(t, c, nil, 6, 60)
	small := queueUp(t, c, nil, 1, 1)
	c.Release(5, 25) // room for the small one only: it must not overtake
	if c.TryAcquire(1, 1) || c.Waiting() != 2 {
		t.Fatal("somebody overtook the one in front")
	}
	c.Release(1, 0)
	if err := wait(t, big, "big"); err != nil {
		t.Fatal(err)
	}
	if c.Waiting() != 1 {
		t.Fatal("more were woken than fit")
	}
	c.Release(2, 10)
	if err := wait(t, small, "small"); err != nil {
		t.Fatal(err)
	}
	if items, bytes := c.InUse(); items != 9 || bytes != 76 {
		t.Errorf("in use %d, %d", items, bytes)
	}
	if items, bytes := c.Limit(); items != 10 || bytes != 100 {
		t.Errorf("limit %d, %d", items, bytes)
	}
}

func TestARequestLargerThanTheBoundIsAdmittedAlone(t *testing.T) {
	c := NewCredit(4, 100)
	if !c.TryAcquire(1, 10) || c.TryAcquire(1, 5000) {
		t.Fatal("oversized beside others")
	}
	huge := queueUp(t, c, nil, 1, 5000)
	c.Release(1, 10)
	if err := wait(t, huge, "huge"); err != nil {
		t.Fatal(err)
	}
	if c.TryAcquire(1, 0) {
		t.Fatal("somebody beside an oversized one")
	}
	c.Release(1, 5000)
	if !c.TryAcquire(4, 100) {
		t.Fatal("room was lost")
	}
}

func TestACanceledWaiterHoldsNothingAndLetsTheNextPass(t *testing.T) {
	c := NewCredit(4, 100)
	c.TryAcquire(3, 0)
	done := make(chan struct{})
	first := queueUp(t, c, done, 4, 0)
	second := queueUp(t, c, nil, 1, 0)
	close(done)
	if err := wait(t, first, "first"); !errors.Is(err, ErrAcquireCanceled) {
		t.Fatal(err)
	}
	if err := wait(t, second, "second"); err != nil {
		t.Fatal(err)
	}
	if items, _ := c.InUse(); items != 4 {
		t.Errorf("%d in use", items)
	}
}

func TestAClosedCreditRefusesWaitersAndTakesPermitsBack(t *testing.T) {
	why := errors.New("connection is closing")
	c := NewCredit(1, 1)
	c.TryAcquire(1, 1)
	waiter := queueUp(t, c, nil, 1, 1)
	c.Close(why)
	c.Close(nil)
	if err := wait(t, waiter, "waiter"); !errors.Is(err, why) {
		t.Fatal(err)
	}
	if err := c.Acquire(nil, 1, 1); !errors.Is(err, why) {
		t.Fatal(err)
	}
	c.Release(1, 1)
	if c.TryAcquire(1, 1) {
		t.Fatal("closed credit gave permits")
	}
	mustPanic(t, "releasing more than is held", func() { c.Release(1, 0) })
	mustPanic(t, "negative permits", func() { c.TryAcquire(-1, 0) })
	mustPanic(t, "no bound", func() { NewCredit(0, 1) })
	d := NewCredit(1, 1)
	d.Close(nil)
	if err := d.Acquire(nil, 1, 1); !errors.Is(err, ErrCreditClosed) {
		t.Fatal(err)
	}
}

func TestTryAcquireDoesWhatItsNaiveTwinDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limI, limB := rapid.IntRange(1, 5).Draw(t, "items"), rapid.IntRange(1, 50).Draw(t, "bytes")
		c := NewCredit(limI, limB)
		var held [][2]int
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				want := [2]int{rapid.IntRange(1, 7).Draw(t, "i"), rapid.IntRange(0, 60).Draw(t, "b")}
				items, bytes := want[0], want[1]
				for _, h := range held {
					items, bytes = items+h[0], bytes+h[1]
				}
				fits := len(held) == 0 || items <= limI && bytes <= limB
				if c.TryAcquire(want[0], want[1]) != fits {
					t.Fatalf("%v beside %v of %d, %d: fits %v", want, held, limI, limB, fits)
				}
				if fits {
					held = append(held, want)
				}
			},
			"release": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing held")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				c.Release(held[i][0], held[i][1])
				held = append(held[:i], held[i+1:]...)
			},
		})
	})
}

func TestCreditIsNeverExceededAndNobodyStarves(t *testing.T) {
	c := NewCredit(8, 1000)
	var items, bytes, refused atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(g)))
			canceled := make(chan struct{})
			close(canceled)
			for range 500 {
				i, b := 1+r.IntN(8), r.IntN(1000)
				var done <-chan struct{}
				if r.IntN(10) == 0 {
					done = canceled
				}
				if err := c.Acquire(done, i, b); err != nil {
					refused.Add(1)
					continue
				}
				if items.Add(int64(i)) > 8 || bytes.Add(int64(b)) > 1000 {
					t.Error("bound exceeded")
				}
				items.Add(-int64(i))
				bytes.Add(-int64(b))
				c.Release(i, b)
			}
		})
	}
	wg.Wait()
	if i, b := c.InUse(); i != 0 || b != 0 || c.Waiting() != 0 {
		t.Errorf("left: %d items, %d bytes, %d waiting", i, b, c.Waiting())
	}
}
