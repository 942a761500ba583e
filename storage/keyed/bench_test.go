package keyed

import (
	"math/rand/v2"
	"testing"
)

func big(b *testing.B) *Fold {
	f := NewFold(newTestIndex(0), decodeChange, 0)
	fill(b, f, bigKeys(), 1)
	b.ReportAllocs()
	b.ResetTimer()
	return f
}

// keys are some of the names, in no order.
func someKeys(n int) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	list := make([][]byte, 1<<14)
	for i := range list {
		list[i] = bigKey(nil, r.IntN(n))
	}
	return list
}

func BenchmarkGet(b *testing.B) {
	x, keys, dst := big(b).Index(), someKeys(bigKeys()), make([]byte, 0, 256)
	for i := 0; b.Loop(); i++ {
		if _, ok := x.Get(keys[i%len(keys)], 0, dst); !ok {
			b.Fatal("not there")
		}
	}
}

// Readers on all processors, and one that writes all the time.
func BenchmarkGetBesideAWriter(b *testing.B) {
	f := big(b)
	x, keys := f.Index(), someKeys(bigKeys())
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				x.Put(Entry{Key: keys[i%len(keys)], Value: make([]byte, valueBytes), Offset: f.Next()})
			}
		}
	}()
	b.RunParallel(func(p *testing.PB) {
		dst := make([]byte, 0, 256)
		for i := 0; p.Next(); i++ {
			if _, ok := x.Get(keys[i*7%len(keys)], 0, dst); !ok {
				b.Error("not there")
				return
			}
		}
	})
	close(stop)
	<-done
}

func BenchmarkGetParallel(b *testing.B) {
	x, keys := big(b).Index(), someKeys(bigKeys())
	b.RunParallel(func(p *testing.PB) {
		dst := make([]byte, 0, 256)
		for i := 0; p.Next(); i++ {
			x.Get(keys[i*7%len(keys)], 0, dst)
		}
	})
}

func BenchmarkFoldPutOverAnEntry(b *testing.B) {
	f, keys, value := big(b), someKeys(bigKeys()), string(make([]byte, valueBytes))
	batches := make([]func(), 1<<10)
	for i := range batches {
		one := batchOf(0, put(string(keys[i]), value))
		batches[i] = func() { one.Base = f.Next(); apply(b, f, one) }
	}
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		batches[i%len(batches)]()
	}
}

func BenchmarkFoldNewKeys(b *testing.B) {
	f := NewFold(newTestIndex(0), decodeChange, 0)
	b.ReportAllocs()
	b.ResetTimer()
	fill(b, f, b.N, 1)
}

func BenchmarkScanThatFindsNothing(b *testing.B) {
	x := big(b).Index()
	for b.Loop() {
		for c := Cursor(0); !c.Done(); {
			c = x.Scan(c, []byte("another"), func(Entry) { b.Fatal("found") })
		}
	}
}
