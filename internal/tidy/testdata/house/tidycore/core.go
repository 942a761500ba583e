// Package tidycore is pure: nothing in it is found by any rule.
package tidycore

import (
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// ErrFull is a sentinel.
var ErrFull = errors.New("full")

var (
	names = []string{"a", "b"}
	sizes = map[string]int{"a": 1}
)

// Core takes time and chance from outside.
type Core struct {
	rand  *rand.Rand
	seen  map[string]time.Time
	level slog.Level
	addr  netip.Addr
}

// New makes a Core with a seed.
func New(seed uint64) *Core {
	return &Core{rand: rand.New(rand.NewPCG(seed, 1)), seen: map[string]time.Time{}}
}

// Step is pure.
func (c *Core) Step(now time.Time, name string) (time.Time, error) {
	if sizes[name] == 0 || len(names) < 2 {
		return now, ErrFull
	}
	c.seen[name] = now.Add(time.Duration(c.rand.IntN(9)))
	c.rand = rand.New(rand.NewPCG(1, 2))
	copied := slices.Clone(names)
	copied[0] = "c"
	return c.seen[slices.Sorted(maps.Keys(c.seen))[0]], nil
}
