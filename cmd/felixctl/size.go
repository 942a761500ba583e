package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

var sizeUnits = []struct {
	name  string
	bytes uint64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}}

// parseSize reads a whole number of bytes, or of a unit: 512MiB, 1GiB, 10GB.
func parseSize(flag, text string) (uint64, error) {
	number, factor := text, uint64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, factor = strings.TrimSpace(rest), u.bytes
		}
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || n > (1<<63-1)/factor {
		return 0, usagef("--%s is %q; use bytes, or a whole number of KiB, MiB, GiB or TiB, such as 1GiB", flag, text)
	}
	return n * factor, nil
}

// sizeText is a number of bytes for people: in the largest binary unit that leaves a whole number.
func sizeText(n uint64) string {
	text := strconv.FormatUint(n, 10) + " bytes"
	for _, u := range sizeUnits[:4] {
		if n > 0 && n%u.bytes == 0 {
			text = strconv.FormatUint(n/u.bytes, 10) + " " + u.name
		}
	}
	return text
}

// ageText is a number of seconds for people.
func ageText(seconds uint64) string {
	const day = 24 * 60 * 60
	if seconds > 0 && seconds%day == 0 {
		return plural(int(seconds/day), "day")
	}
	if seconds > uint64(1<<62)/uint64(time.Second) {
		return strconv.FormatUint(seconds, 10) + " seconds"
	}
	return (time.Duration(seconds) * time.Second).String()
}

// retentionOf reads the flags that bound what is kept; nil when none was given.
func retentionOf(set *pflag.FlagSet) (*limits, error) {
	var l limits
	var err error
	if l.MaxAgeSeconds, err = given(set, "retention-secs", set.GetUint64); err != nil {
		return nil, err
	}
	age, err := given(set, "retention-age", set.GetDuration)
	if err != nil {
		return nil, err
	}
	if age != nil {
		seconds := uint64(max(0, *age) / time.Second)
		switch {
		case l.MaxAgeSeconds != nil:
			return nil, usagef("--retention-age and --retention-secs are given; use one of them")
		case *age <= 0 || *age%time.Second != 0:
			return nil, usagef("--retention-age is %v; use whole seconds, at least one", *age)
		}
		l.MaxAgeSeconds = &seconds
	}
	size, err := given(set, "retention-bytes", set.GetString)
	if err != nil {
		return nil, err
	}
	if size != nil {
		bytes, err := parseSize("retention-bytes", *size)
		if err != nil {
			return nil, err
		}
		l.MaxSizeBytes = &bytes
	}
	if l == (limits{}) {
		return nil, nil
	}
	return &l, nil
}
