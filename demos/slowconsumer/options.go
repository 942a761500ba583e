package main

import (
	"flag"
	"fmt"
	"io"
	"time"
)

// policy is what the broker does when a subscriber's window is full.
type policy string

const (
	dropNew policy = "drop_new" // the arriving batch is lost to that subscriber
	block   policy = "block"    // its acknowledgement waits
)

// options are what the flags say.
type options struct {
	rate          int           // records a second
	subscribers   int           // the first is the one that gets slow
	payload       int           // bytes of a record
	batch         int           // records of a publish
	queueCapacity int           // batches of a subscriber's window at the broker
	others        int           // the same for those that keep up; 0: no other
	duration      time.Duration // of a phase
	policies      []policy
	plain         bool
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	var which string
	flags := flag.NewFlagSet("slowconsumer", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.rate, "rate", 20000, "records a second that are published")
	flags.IntVar(&o.subscribers, "subscribers", 3, "subscribers; the first is the one that gets slow")
	flags.IntVar(&o.payload, "payload", 256, "bytes of a record")
	flags.IntVar(&o.batch, "batch", 40, "records of a publish")
	flags.IntVar(&o.queueCapacity, "queue-capacity", 512, "batches that the broker keeps for a subscriber that is behind")
	flags.IntVar(&o.others, "others-capacity", 0, "the same for those that keep up, on a machine that is busy otherwise; 0 is no other")
	flags.DurationVar(&o.duration, "duration", 5*time.Second, "length of each of the four phases")
	flags.StringVar(&which, "policy", "both", "drop_new, block or both")
	flags.BoolVar(&o.plain, "no-tui", false, "print a line for each phase instead of a live table")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("%q is not understood; see --help", flags.Arg(0))
	}
	switch which {
	case "both":
		o.policies = []policy{dropNew, block}
	case string(dropNew), string(block):
		o.policies = []policy{policy(which)}
	default:
		return options{}, fmt.Errorf("--policy: %q is neither drop_new, block nor both", which)
	}
	return o, o.check()
}

func (o options) check() error {
	for _, x := range []struct {
		flag             string
		value, low, high int
	}{
		{"rate", o.rate, 10, 1_000_000},
		{"subscribers", o.subscribers, 2, 64},
		{"payload", o.payload, recordHeader, 1 << 20},
		{"batch", o.batch, 1, 1000},
		{"queue-capacity", o.queueCapacity, 1, 4096},
		{"others-capacity", o.others, 0, 4096},
		{"duration", int(o.duration.Milliseconds()), 100, 600_000},
	} {
		if x.value < x.low || x.value > x.high {
			unit := ""
			if x.flag == "duration" {
				unit = " ms"
			}
			return fmt.Errorf("--%s: %d%s is not between %d and %d%s", x.flag, x.value, unit, x.low, x.high, unit)
		}
	}
	return nil
}

// capacity is the window of one subscriber, in batches; the first is the one that gets slow.
func (o options) capacity(subscriber int) int {
	if subscriber > 0 && o.others > 0 {
		return o.others
	}
	return o.queueCapacity
}

func (o options) headline() string {
	others := ""
	if o.others > 0 {
		others = fmt.Sprintf(", %d for those that keep up", o.others)
	}
	return fmt.Sprintf("%d records a second of %d bytes, %d to a batch; %d subscribers with a window of %d batches%s; phases of %v",
		o.rate, o.payload, o.batch, o.subscribers, o.queueCapacity, others, o.duration)
}
