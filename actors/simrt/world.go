package simrt

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Class sorts what can run, so that a seed can let one kind starve another.
type Class uint8

const (
	// Turns are turns of actors.
	Turns Class = iota
	// Pumps are coroutines of the system under test.
	Pumps
	// Network is whatever moves between nodes and clients.
	Network
	// Timers are timers that are due.
	Timers
	// Outside are clients, faults, and everything else that acts on the system.
	Outside

	classes
)

var classNames = [classes]string{"turn", "pump", "net", "timer", "outside"}

// String names the class as a trace does.
func (c Class) String() string {
	if c < classes {
		return classNames[c]
	}
	return "unknown"
}

// Options configure a World. The zero value is usable.
type Options struct {
	// Seed decides every choice.
	Seed uint64
	// Start is what a clock without offset shows at the beginning; zero means the first second of 2024, UTC.
	Start time.Time
	// StepTime is the most that a step takes in true time; 0 means StepTimeDefault, negative that steps take none.
	StepTime time.Duration
	// Weights says how much likelier one class is chosen than another while both can run; all zero means all equal. A class of weight
	// zero beside others runs when nothing else can.
	Weights [classes]int
	// TurnItems is the most messages in one turn; the seed draws 1 to it for each. 0 means TurnItemsMax.
	TurnItems int
	// Trace, when not nil, is told of each step.
	Trace func(Line)
	// Check, when not nil, is called after each step: the first error ends the run.
	Check func() error
}

// Line is one step of a trace, for people.
type Line struct {
	Step  int
	Time  time.Duration // true time since the start
	Class Class
	Who   string
	What  string
	Hash  uint64 // after the step
}

// String is the line as it is printed.
func (l Line) String() string {
	return fmt.Sprintf("%6d %14s  %-7s %-34s %s", l.Step, l.Time, l.Class, l.Who, l.What)
}

// work is one thing that could run now.
type work struct {
	who string
	run func()
}

// World is one run of a simulation. It belongs to one goroutine.
//
//  1. a coroutine is current, ready (in ready[Pumps] or ready[Outside]), or waiting, never two of them;
//  2. now never falls, and no timer with an instant before now is in timers after a step has begun;
//  3. hash is a function of the seed and of what the steps did.
type World struct {
	opts    Options
	rand    *rand.Rand
	now     time.Duration
	steps   int
	ready   [classes][]work
	timers  timerHeap
	armed   uint64
	waiting []*coroutine
	alive   []*coroutine
	current *coroutine
	closing bool
	hash    Hash
	who     string   // of the step in progress
	notes   []string // of the step in progress, for the trace
}

// New returns a world in which nothing has happened.
func New(opts Options) *World {
	if opts.Start.IsZero() {
		opts.Start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if opts.StepTime == 0 {
		opts.StepTime = StepTimeDefault
	}
	if opts.TurnItems <= 0 || opts.TurnItems > TurnItemsMax {
		opts.TurnItems = TurnItemsMax
	}
	if opts.Weights == ([classes]int{}) {
		opts.Weights = [classes]int{1, 1, 1, 1, 1}
	}
	return &World{opts: opts, rand: rand.New(rand.NewPCG(opts.Seed, 0x73696d)), hash: Hash(mix(opts.Seed))}
}

// Rand is the source of all chance. Only code that runs inside a step, or before the first, may draw from it.
func (w *World) Rand() *rand.Rand { return w.rand }

// Now is the true time since the start.
func (w *World) Now() time.Duration { return w.now }

// Steps is how many steps were taken.
func (w *World) Steps() int { return w.steps }

// Hash is the trace hash of all steps so far.
func (w *World) Hash() uint64 { return uint64(w.hash) }

// Mix takes part of a step's effect into the trace hash.
func (w *World) Mix(values ...uint64) { w.hash.Add(values...) }

// MixText does the same for a string.
func (w *World) MixText(s string) { w.hash.Text(s) }

// MixBytes does the same for bytes.
func (w *World) MixBytes(p []byte) { w.hash.Bytes(p) }

// Tracing reports whether somebody reads the notes.
func (w *World) Tracing() bool { return w.opts.Trace != nil }

// Note adds to the trace what the step in progress did. It costs nothing while nobody reads.
func (w *World) Note(format string, args ...any) {
	if w.opts.Trace != nil {
		w.notes = append(w.notes, fmt.Sprintf(format, args...))
	}
}

// Name replaces the name of the step in progress: who ran is sometimes known only after it did.
func (w *World) Name(who string) { w.who = who }

// Post makes run a possible next step.
func (w *World) Post(c Class, who string, run func()) {
	w.ready[c] = append(w.ready[c], work{who, run})
}

// ErrIdle says that nothing can run and no timer is armed.
var ErrIdle = errors.New("simulation: nothing can ever happen any more")

// Run steps until the condition holds. Its errors are those of Options.Check; ErrIdle, when nothing can run any more before that;
// and one that says so, when it takes more than steps steps.
func (w *World) Run(steps int, until func() bool) error {
	for n := 0; !until(); n++ {
		if n == steps {
			return fmt.Errorf("simulation: not done after %d steps, at %v", steps, w.now)
		}
		if err := w.Step(); err != nil {
			return err
		}
	}
	return nil
}

// Step takes one step, moving time to the next timer if nothing else can run.
func (w *World) Step() error {
	w.wakeEnded()
	w.fireDue()
	class, ok := w.choose()
	if !ok {
		if !w.leap() {
			return ErrIdle
		}
		return w.Step()
	}
	job := w.take(class)
	w.steps++
	w.who, w.notes = job.who, w.notes[:0]
	w.hash.Add(uint64(w.steps), uint64(class))
	job.run()
	w.hash.Text(w.who)
	if w.opts.Trace != nil {
		w.opts.Trace(Line{Step: w.steps, Time: w.now, Class: class, Who: w.who, What: join(w.notes), Hash: uint64(w.hash)})
	}
	if w.opts.StepTime > 0 {
		w.now += time.Duration(w.rand.Int64N(int64(w.opts.StepTime) + 1))
	}
	if w.opts.Check != nil {
		return w.opts.Check()
	}
	return nil
}

// choose draws a class that can run; false when none can.
func (w *World) choose() (Class, bool) {
	total, last, runnable := 0, Class(0), false
	for c := range classes {
		if len(w.ready[c]) > 0 {
			total += w.opts.Weights[c]
			last, runnable = c, true
		}
	}
	if total == 0 {
		return last, runnable
	}
	n := w.rand.IntN(total)
	for c := range classes {
		if len(w.ready[c]) == 0 {
			continue
		}
		if n -= w.opts.Weights[c]; n < 0 {
			return c, true
		}
	}
	panic("simrt: the weights do not add up")
}

// take removes a random job of the class.
func (w *World) take(c Class) work {
	list := w.ready[c]
	i, last := w.rand.IntN(len(list)), len(list)-1
	job := list[i]
	list[i], list[last] = list[last], work{}
	w.ready[c] = list[:last]
	return job
}

// Idle reports whether nothing can run now; timers may be armed.
func (w *World) Idle() bool {
	w.wakeEnded()
	for c := range classes {
		if len(w.ready[c]) > 0 {
			return false
		}
	}
	return len(w.timers) == 0 || w.timers[0].due > w.now
}

// Timers names the clocks of the timers that are armed, one for each, in no order that means anything.
func (w *World) Timers() []string {
	names := make([]string, len(w.timers))
	for i, t := range w.timers {
		names[i] = t.clock.name
	}
	return names
}

func join(notes []string) string {
	out := ""
	for i, n := range notes {
		if i > 0 {
			out += "; "
		}
		out += n
	}
	return out
}
