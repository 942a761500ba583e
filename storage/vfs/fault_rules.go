package vfs

import (
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Bounds of a control file: it is written by hand or by a test.
const (
	maxRuleText = 64 << 10
	maxRules    = 256
	maxDelay    = time.Hour
	maxCount    = 1 << 30
)

// RuleError refuses a control file.
type RuleError struct {
	Line int    // from 1; 0: the file as a whole
	Text string // the line
	Why  string
}

func (e *RuleError) Error() string {
	if e.Line == 0 {
		return "storage faults: " + e.Why
	}
	return fmt.Sprintf("storage faults: line %d, %s: %s", e.Line, quote(e.Text), e.Why)
}

// ParseRules reads the text of a control file: a rule per line, empty lines, and comments that begin with #.
//
//	sync delay=4ms
//	sync,syncdir name=orders-*/*.log from=3 times=1 error=EIO
//	write name=*.log short error=ENOSPC
//
// A rule is the calls that it is about, "all" or names with commas between them, then any of these, separated by spaces, each once:
//
//	name=PATTERN  the file's name below the storage root, or its last part, matches (path.Match); a pattern holds no space
//	from=N        the first N-1 calls that match are left alone
//	times=N       only so many are hit
//	block         they wait until the file no longer has any such line
//	delay=D       they take so much longer, up to 1h
//	short         writes write half of what they shall, and fail
//	error=E       they fail, and do nothing
//	late          with error: they fail after they did it
//
// E is ENOSPC, EDQUOT, EIO, ESTALE, EMFILE, ENFILE, EROFS, EACCES or ENOENT. A rule that does none of block, delay, short and error is
// refused. The calls are create, open, mkdir, readdir, stat, rename, remove, syncdir, lock, device, free, read, write, truncate, sync, size,
// preallocate and close.
func ParseRules(text string) ([]Rule, error) {
	if len(text) > maxRuleText {
		return nil, &RuleError{Why: fmt.Sprintf("it is longer than %d bytes", maxRuleText)}
	}
	var rules []Rule
	line := 0
	for text := range strings.SplitSeq(text, "\n") {
		line++
		text, _, _ = strings.Cut(text, "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		r, why := parseRule(words)
		if why == "" && len(rules) == maxRules {
			why = fmt.Sprintf("there are more than %d rules", maxRules)
		}
		if why != "" {
			return nil, &RuleError{Line: line, Text: strings.TrimSpace(text), Why: why}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// parseRule returns what is wrong with a rule, or nothing.
func parseRule(words []string) (r Rule, why string) {
	if words[0] != "all" {
		for name := range strings.SplitSeq(words[0], ",") {
			c, ok := ParseCall(name)
			if !ok {
				return r, "there is no call " + quote(name)
			}
			r.Calls = append(r.Calls, c)
		}
	}
	seen := map[string]bool{}
	for _, word := range words[1:] {
		key, value, has := strings.Cut(word, "=")
		if seen[key] {
			return r, key + " is there twice"
		}
		seen[key] = true
		if why := r.option(key, value, has); why != "" {
			return r, why
		}
	}
	switch {
	case r.Late && r.Err == nil:
		return r, "late needs an error"
	case r.Late && r.Short:
		return r, "a write is either short or late"
	case !r.Block && r.Delay == 0 && !r.Short && r.Err == nil:
		return r, "it does nothing: give it block, delay, short or error"
	}
	return r, ""
}

// option sets one option.
func (r *Rule) option(key, value string, has bool) (why string) {
	flag := key == "block" || key == "short" || key == "late"
	if flag == has {
		if has {
			return key + " has no value"
		}
		return "there is no option " + quote(key) + " without a value"
	}
	switch key {
	case "block":
		r.Block = true
	case "short":
		r.Short = true
	case "late":
		r.Late = true
	case "name":
		r.Name = value
		if _, err := path.Match(value, ""); err != nil || value == "" {
			return quote(value) + " is no pattern"
		}
	case "from":
		return count(key, value, &r.From)
	case "times":
		return count(key, value, &r.Times)
	case "delay":
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 || d > maxDelay {
			return fmt.Sprintf("delay must be a duration above 0 and up to %s, such as 4ms", maxDelay)
		}
		r.Delay = d
	case "error":
		if r.Err = errorNamed(value); r.Err == nil {
			return "there is no error " + quote(value)
		}
	default:
		return "there is no option " + quote(key)
	}
	return ""
}

func count(key, value string, to *int) (why string) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > maxCount {
		return fmt.Sprintf("%s must be a number from 1 to %d", key, maxCount)
	}
	*to = n
	return ""
}

// namedErrors are the errors that a control file can ask for.
func namedErrors() []struct {
	name string
	err  syscall.Errno
} {
	return []struct {
		name string
		err  syscall.Errno
	}{
		{"ENOSPC", syscall.ENOSPC}, {"EDQUOT", syscall.EDQUOT}, {"EIO", syscall.EIO}, {"ESTALE", syscall.ESTALE},
		{"EMFILE", syscall.EMFILE}, {"ENFILE", syscall.ENFILE}, {"EROFS", syscall.EROFS}, {"EACCES", syscall.EACCES}, {"ENOENT", syscall.ENOENT},
	}
}

func errorNamed(name string) error {
	for _, e := range namedErrors() {
		if e.name == name {
			return e.err
		}
	}
	return nil
}

func errorName(err error) string {
	for _, e := range namedErrors() {
		if e.err == err {
			return e.name
		}
	}
	return quote(err.Error())
}

// Load puts the rules of a control file in force, in place of all others. A text that is not a valid one changes nothing; nor does the one
// that was loaded last, so that counts go on.
func (f *Fault) Load(text string) error {
	rules, err := ParseRules(text)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.loaded || text != f.text {
		f.set(rules)
		f.text, f.loaded = text, true
	}
	return nil
}

// LoadFile is Load of what a file of the machine holds. A file that is not there has no rules.
func (f *Fault) LoadFile(name string) error {
	file, err := os.Open(name)
	if os.IsNotExist(err) {
		return f.Load("")
	}
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxRuleText+1))
	if err != nil {
		return err
	}
	return f.Load(string(text))
}
