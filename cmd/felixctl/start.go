package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/wire/id"
)

// startHelp is what a position is given as.
const startHelp = "an offset, earliest, time:2026-01-31T12:00:00Z, or -5m for five minutes ago"

// start is where to begin: an offset, a time, or a word.
type start struct {
	client.Start
	offset   id.Offset
	since    time.Time // with timed
	timed    bool
	earliest bool
	latest   bool
}

// parseStart reads the position that a flag, such as --from, was given.
func parseStart(flag, text string, now time.Time) (start, error) {
	switch text {
	case "latest":
		return start{Start: client.Latest(), latest: true}, nil
	case "earliest":
		return start{Start: client.Earliest(), earliest: true}, nil
	}
	if clock, ok := strings.CutPrefix(text, "time:"); ok {
		at, err := time.Parse(time.RFC3339Nano, clock)
		if err != nil {
			return start{}, usagef("%s is %q; give a time as RFC 3339 has it, such as time:2026-01-31T12:00:00Z", flag, text)
		}
		return since(at), nil
	}
	if strings.HasPrefix(text, "-") {
		ago, err := time.ParseDuration(text[1:])
		if err != nil {
			return start{}, usagef("%s is %q; give a time span, such as -5m or -1h30m", flag, text)
		}
		return since(now.Add(-ago)), nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return start{}, usagef("%s is %q; use latest, %s", flag, text, startHelp)
	}
	return start{Start: client.At(id.Offset(n)), offset: id.Offset(n)}, nil
}

func since(at time.Time) start { return start{Start: client.Since(at), since: at, timed: true} }
