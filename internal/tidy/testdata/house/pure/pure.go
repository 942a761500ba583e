// Package pure calls itself pure and is not.
package pure

import (
	crand "crypto/rand" // want purity: imports crypto/rand
	"math/rand/v2"
	"net" // want purity: imports net
	"os"  // want purity: imports os
	"sync"
	watch "time"
)

var (
	count   int
	table   = map[string]int{"a": 1}
	rows    = [3]row{}
	guard   sync.Mutex
	pool    sync.Pool
	pointer = &row{}
)

type row struct{ n int }

func (r *row) bump() { r.n++ }

func init() { // want purity: has an init function
	count = 1 // want purity: count changes | variables: count changes
}

func clock() (any, watch.Time) {
	later := watch.AfterFunc  // want purity: uses time.AfterFunc
	return later, watch.Now() // want purity: uses time.Now
}

func chance() int {
	var b [1]byte
	_, _ = crand.Read(b[:])
	return rand.IntN(3) // want purity: global randomness of math/rand/v2.IntN
}

func work(c chan int) {
	go chance() // want purity: starts a goroutine
	select {    // want purity: selects
	case <-c:
	default:
	}
	_, _ = net.Dial("udp", os.Args[0])
}

func change(other map[string]int) {
	count++               // want purity: count changes | variables: count changes
	table["b"] = 2        // want purity: table changes | variables: table changes
	delete(table, "a")    // want purity: table changes | variables: table changes
	(rows[1]).n += 1      // want purity: rows changes | variables: rows changes
	rows[2].bump()        // want purity: rows changes | variables: rows changes
	guard.Lock()          // want purity: guard changes | variables: guard changes
	_ = &rows[0]          // want purity: rows changes | variables: rows changes
	pointer.n = 4         // want purity: pointer changes | variables: pointer changes
	_ = pool.Get()        // want purity: pool changes
	for count = range 3 { // want purity: count changes | variables: count changes
	}
	delete(other, "a")
	other["c"] = count
}
