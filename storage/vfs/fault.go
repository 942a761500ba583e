package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Rule says what goes wrong with which calls of a Fault. Of several that match a call all delays and blocks count, in the order of the rules;
// the first that has an error ends the matter, and those behind it do not see the call.
type Rule struct {
	Calls []Call // none: all calls
	// Name is a pattern of path.Match on the name that a call is about, either one of a rename; a pattern without a slash is also tried on
	// the last part alone. Empty: every name. A File has the name that it was opened by.
	Name string
	// Match takes the place of Name, if it is there.
	Match func(name string) bool
	// From is the first call that is hit, counted from 1 among those that match since the rule was added; 0 is 1. Times is how many are hit from
	// there on; 0 is all of them.
	From, Times int

	Block bool          // the call waits until the rule is released or removed
	Delay time.Duration // then it takes this much longer
	Short bool          // then, if it is a write, half of it is written and it fails: with Err, or io.ErrShortWrite
	Err   error         // then it fails with this, wrapped, and nothing is done
	Late  bool          // with Err: it is done all the same, and fails afterwards
}

// Fault is another FS whose calls can be made slow and made to fail, while it is in use. It is safe for concurrent use.
type Fault struct {
	inner FS
	sleep func(time.Duration)

	mu    sync.Mutex
	rules []*ActiveRule
	// What Load was given last, while its rules are the ones in force.
	text   string
	loaded bool
}

// ActiveRule is a rule of a Fault.
type ActiveRule struct {
	rule    Rule
	fault   *Fault
	seen    int // calls that matched; under fault.mu
	hits    atomic.Int64
	reached chan struct{} // closed by the first hit
	free    chan struct{} // closed when released
	once    sync.Once
}

// NewFault returns an FS that does what another one does until it has rules. sleep is how delays pass; nil is time.Sleep.
func NewFault(inner FS, sleep func(time.Duration)) *Fault {
	if sleep == nil {
		sleep = time.Sleep
	}
	return &Fault{inner: inner, sleep: sleep}
}

// Add adds a rule behind those that are there. It panics on a pattern that is none; ParseRules refuses those.
func (f *Fault) Add(r Rule) *ActiveRule {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(r)
}

func (f *Fault) add(r Rule) *ActiveRule {
	if _, err := path.Match(r.Name, ""); err != nil {
		panic("vfs: Fault: pattern " + quote(r.Name) + ": " + err.Error())
	}
	a := &ActiveRule{rule: r, fault: f, reached: make(chan struct{}), free: make(chan struct{})}
	f.rules = append(f.rules, a)
	return a
}

// Set replaces all rules. Calls that were blocked go on.
func (f *Fault) Set(rules []Rule) []*ActiveRule {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded = false
	return f.set(rules)
}

func (f *Fault) set(rules []Rule) []*ActiveRule {
	for _, a := range f.rules {
		a.Release()
	}
	f.rules = nil
	for _, r := range rules {
		f.add(r)
	}
	return slices.Clone(f.rules)
}

// Rules is what is in force, in order.
func (f *Fault) Rules() []*ActiveRule {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.rules)
}

// Rule is what was added.
func (a *ActiveRule) Rule() Rule { return a.rule }

// Hits is how many calls the rule took effect on. A test that expects a fault must see it here.
func (a *ActiveRule) Hits() int64 { return a.hits.Load() }

// Reached is closed when the rule first takes effect.
func (a *ActiveRule) Reached() <-chan struct{} { return a.reached }

// Release lets blocked calls go on; later ones are not blocked.
func (a *ActiveRule) Release() { a.once.Do(func() { close(a.free) }) }

// Remove ends the rule, and releases it.
func (a *ActiveRule) Remove() {
	a.Release()
	a.fault.mu.Lock()
	defer a.fault.mu.Unlock()
	a.fault.rules = slices.DeleteFunc(a.fault.rules, func(b *ActiveRule) bool { return a == b })
}

// matches reports whether a call is the rule's.
func (r *Rule) matches(c Call, name string) bool {
	if len(r.Calls) > 0 && !slices.Contains(r.Calls, c) {
		return false
	}
	switch {
	case r.Match != nil:
		return r.Match(name)
	case r.Name == "":
		return true
	}
	ok, _ := path.Match(r.Name, name) // the pattern was checked
	if !ok && !strings.Contains(r.Name, "/") {
		ok, _ = path.Match(r.Name, path.Base(name))
	}
	return ok
}

// fails reports whether the rule makes this call fail.
func (r *Rule) fails(c Call) bool { return r.Err != nil || r.Short && c == CallWrite }

// hit counts a call on the rules, and returns those that take effect; the last one may be one that makes it fail.
func (f *Fault) hit(c Call, names []string) (hit []*ActiveRule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.rules {
		r := &a.rule
		if !slices.ContainsFunc(names, func(n string) bool { return r.matches(c, n) }) {
			continue
		}
		a.seen++
		first := max(1, r.From)
		if a.seen < first || r.Times > 0 && a.seen >= first+r.Times {
			continue
		}
		if a.hits.Add(1) == 1 {
			close(a.reached)
		}
		hit = append(hit, a)
		if r.fails(c) {
			break
		}
	}
	return hit
}

// enter makes a call wait, and returns the rule that makes it fail, or nil.
func (f *Fault) enter(c Call, names ...string) *Rule {
	for _, a := range f.hit(c, names) {
		if a.rule.Block {
			<-a.free
		}
		if a.rule.Delay > 0 {
			f.sleep(a.rule.Delay)
		}
		if a.rule.fails(c) {
			return &a.rule
		}
	}
	return nil
}

// call is a whole call, with the error that a rule asks for.
func (f *Fault) call(do func() error, c Call, names ...string) error {
	r := f.enter(c, names...)
	if r == nil {
		return do()
	}
	failed := &fs.PathError{Op: c.String(), Path: names[0], Err: r.Err}
	if r.Late {
		if err := do(); err != nil {
			return err
		}
	}
	return failed
}

// closing is a call that returns something to be closed. If a rule makes it fail, that is closed.
func closing[T io.Closer](f *Fault, do func() (T, error), c Call, name string) (got T, err error) {
	var none T
	have := false
	err = f.call(func() error {
		got, err = do()
		have = err == nil
		return err
	}, c, name)
	if err == nil {
		return got, nil
	}
	if have {
		err = errors.Join(err, got.Close())
	}
	return none, err
}

// String is the rule as a line of a control file. A Match, and an error without a name there, cannot be said in one.
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(callNames(r.Calls))
	if r.Name != "" {
		b.WriteString(" name=" + r.Name)
	}
	if r.From > 0 {
		fmt.Fprintf(&b, " from=%d", r.From)
	}
	if r.Times > 0 {
		fmt.Fprintf(&b, " times=%d", r.Times)
	}
	if r.Block {
		b.WriteString(" block")
	}
	if r.Delay > 0 {
		b.WriteString(" delay=" + r.Delay.String())
	}
	if r.Short {
		b.WriteString(" short")
	}
	if r.Err != nil {
		b.WriteString(" error=" + errorName(r.Err))
	}
	if r.Late {
		b.WriteString(" late")
	}
	return b.String()
}

func callNames(calls []Call) string {
	if len(calls) == 0 {
		return "all"
	}
	names := make([]string, len(calls))
	for i, c := range calls {
		names[i] = c.String()
	}
	return strings.Join(names, ",")
}
