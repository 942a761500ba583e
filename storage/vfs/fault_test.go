package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const patience = time.Minute

func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s: nothing within %s", what, patience)
	}
	return v
}

// each runs every call there is on name, which is a file, and returns their errors.
func each(disk FS, name string) map[Call]error {
	got := map[Call]error{}
	f, err := disk.Open(name, true)
	got[CallOpen] = err
	if err == nil {
		_, got[CallRead] = f.ReadAt(make([]byte, 1), 0)
		_, got[CallWrite] = f.WriteAt(make([]byte, 2), 0)
		got[CallTruncate], got[CallSync], got[CallPreallocate] = f.Truncate(2), f.Sync(), f.Preallocate(1)
		_, got[CallSize] = f.Size()
		got[CallClose] = f.Close()
	}
	_, got[CallStat] = disk.Stat(name)
	_, got[CallReadDir] = disk.ReadDir(".")
	got[CallSyncDir] = disk.SyncDir(".")
	_, got[CallDevice] = disk.Device(name)
	_, got[CallFree] = disk.Free(".")
	got[CallRename] = disk.Rename(name, "other")
	if got[CallRename] != nil {
		got[CallRemove] = disk.Remove(name)
	} else {
		got[CallRemove] = disk.Remove("other")
	}
	f, got[CallCreate] = disk.Create("fresh")
	if f != nil {
		f.Close()
	}
	got[CallMkdir] = disk.Mkdir("dir")
	l, err := disk.Lock("LOCK", false, "me")
	got[CallLock] = err
	if l != nil {
		l.Close()
	}
	return got
}

func TestEveryCallCanBeMadeToFail(t *testing.T) {
	for c := CallCreate; c < callEnd; c++ {
		for _, late := range []bool{false, true} {
			t.Run(c.String(), func(t *testing.T) {
				m := NewMem()
				put(t, m, "f", "xy")
				f := NewFault(m, nil)
				a := f.Add(Rule{Calls: []Call{c}, Err: syscall.ESTALE, Late: late})
				got := each(f, "f")
				if a.Hits() == 0 {
					t.Fatal("the rule took no effect")
				}
				if !errors.Is(got[c], syscall.ESTALE) {
					t.Fatalf("%v", got[c])
				}
				for _, other := range []Call{CallStat, CallSyncDir, CallLock, CallMkdir} {
					if other != c && got[other] != nil {
						t.Errorf("%s fails too: %v", other, got[other])
					}
				}
				if m.OpenFiles() != 0 {
					t.Fatalf("%d files stay open", m.OpenFiles())
				}
			})
		}
	}
}

func TestFailedCallsDoNothingAndLateOnesAll(t *testing.T) {
	for _, late := range []bool{false, true} {
		m := NewMem()
		put(t, m, "f", "old")
		f := NewFault(m, nil)
		file, err := f.Open("f", true)
		must(t, err)
		f.Add(Rule{Calls: []Call{CallWrite, CallRename, CallCreate}, Err: syscall.EIO, Late: late})
		n, err := file.WriteAt([]byte("new"), 0)
		wants(t, "write", err, syscall.EIO)
		wants(t, "rename", f.Rename("f", "g"), syscall.EIO)
		_, err = f.Create("h")
		wants(t, "create", err, syscall.EIO)
		want, left := "old", []string{"f"}
		if late {
			want, left = "new", []string{"g", "h"}
		}
		if got := names(t, m, "."); !slices.Equal(got, left) || get(t, m, left[0]) != want || (n == 3) != late {
			t.Fatalf("late %v: %v, %d bytes", late, got, n)
		}
	}
}

func TestShortWriteLeavesHalf(t *testing.T) {
	m := NewMem()
	f := NewFault(m, nil)
	file, err := f.Create("f")
	must(t, err)
	a := f.Add(Rule{Calls: []Call{CallWrite}, Short: true, From: 2, Times: 1})
	_, err = file.WriteAt([]byte("full"), 0)
	must(t, err)
	n, err := file.WriteAt([]byte("12345678"), 4)
	if n != 4 || !errors.Is(err, io.ErrShortWrite) || a.Hits() != 1 {
		t.Fatal(n, err, a.Hits())
	}
	if got := get(t, m, "f"); got != "full1234" {
		t.Fatal(got)
	}
	f.Set([]Rule{{Calls: []Call{CallWrite}, Short: true, Err: syscall.ENOSPC}})
	if n, err = file.WriteAt([]byte("abcd"), 0); n != 2 || !IsNoSpace(err) {
		t.Fatal(n, err)
	}
	// Short alone is about writes only.
	f.Set([]Rule{{Short: true}})
	must(t, file.Sync())
}

func TestRuleHitsTheCallsItCounts(t *testing.T) {
	f := NewFault(NewMem(), nil)
	third := f.Add(Rule{Calls: []Call{CallMkdir}, From: 3, Times: 2, Err: syscall.EIO})
	var got []bool
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		got = append(got, f.Mkdir(name) == nil)
	}
	if !slices.Equal(got, []bool{true, true, false, false, true}) || third.Hits() != 2 {
		t.Fatal(got, third.Hits())
	}
	third.Remove()
	if len(f.Rules()) != 0 {
		t.Fatal(f.Rules())
	}
}

func TestRulesMatchNames(t *testing.T) {
	for _, c := range []struct {
		rule  Rule
		name  string
		match bool
	}{
		{Rule{}, "x/y", true},
		{Rule{Name: "*.log"}, "orders-1/0.log", true},
		{Rule{Name: "*.log"}, "orders-1/0.index", false},
		{Rule{Name: "orders-*/*"}, "orders-1/0.log", true},
		{Rule{Name: "orders-*/*"}, "caches/orders-1/0.log", false},
		{Rule{Name: "orders-1"}, "orders-1", true},
		{Rule{Match: func(n string) bool { return len(n) == 3 }, Name: "ignored"}, "abc", true},
		{Rule{Calls: []Call{CallSync}}, "x", false},
	} {
		if got := c.rule.matches(CallStat, c.name); got != c.match {
			t.Errorf("%s on %s: %v", c.rule, c.name, got)
		}
	}
	f := NewFault(NewMem(), nil)
	put(t, f, "a", "")
	f.Add(Rule{Name: "b", Err: syscall.EIO})
	wants(t, "a rename is about both names", f.Rename("a", "b"), syscall.EIO)
	defer func() {
		if recover() == nil {
			t.Error("a pattern that is none was taken")
		}
	}()
	f.Add(Rule{Name: "["})
}

func TestDelaysAddUpAndErrorsEndTheMatter(t *testing.T) {
	var slept []time.Duration
	f := NewFault(NewMem(), func(d time.Duration) { slept = append(slept, d) })
	f.Add(Rule{Delay: 1})
	f.Add(Rule{Delay: 2, Err: syscall.EIO, Times: 1})
	last := f.Add(Rule{Delay: 4})
	wants(t, "first", f.Mkdir("a"), syscall.EIO)
	must(t, f.Mkdir("a"))
	if !slices.Equal(slept, []time.Duration{1, 2, 1, 4}) || last.Hits() != 1 {
		t.Fatal(slept, last.Hits())
	}
}

func TestDelayTakesRealTime(t *testing.T) {
	f := NewFault(NewMem(), nil)
	f.Add(Rule{Calls: []Call{CallSyncDir}, Delay: 5 * time.Millisecond})
	start := time.Now()
	must(t, f.SyncDir("."))
	if d := time.Since(start); d < 5*time.Millisecond {
		t.Fatal(d)
	}
}

func TestBlockedCallWaitsUntilReleased(t *testing.T) {
	for name, free := range map[string]func(f *Fault, a *ActiveRule){
		"release": func(_ *Fault, a *ActiveRule) { a.Release(); a.Release() },
		"remove":  func(_ *Fault, a *ActiveRule) { a.Remove() },
		"set":     func(f *Fault, _ *ActiveRule) { f.Set(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMem()
			f := NewFault(m, nil)
			put(t, f, "f", "x")
			a := f.Add(Rule{Calls: []Call{CallRemove}, Block: true})
			done := make(chan error, 1)
			go func() { done <- f.Remove("f") }()
			await(t, "call arrived", a.Reached())
			if len(done) != 0 || get(t, f, "f") != "x" {
				t.Fatal("it did not wait")
			}
			free(f, a)
			must(t, await(t, "call", done))
			if got := names(t, m, "."); len(got) != 0 {
				t.Fatal(got)
			}
			if name == "release" {
				must(t, m.Mkdir("d"))
				must(t, f.Remove("d"))
			}
		})
	}
}

// A sync that fails syncs nothing: the power cut shows it.
func TestFailedSyncIsNoSync(t *testing.T) {
	m := NewMem()
	f := NewFault(m, nil)
	file, err := f.Create("f")
	must(t, errors.Join(err, f.SyncDir(".")))
	f.Add(Rule{Calls: []Call{CallSync}, Err: syscall.EIO, Times: 1})
	_, err = file.WriteAt([]byte("x"), 0)
	must(t, err)
	wants(t, "sync", file.Sync(), syscall.EIO)
	if got := get(t, m.CrashHard(), "f"); got != "" {
		t.Fatal(got)
	}
	must(t, file.Sync())
	if got := get(t, m.CrashHard(), "f"); got != "x" {
		t.Fatal(got)
	}
}

func TestControlFileSaysItAll(t *testing.T) {
	rules, err := ParseRules("# slow disk\n\nsync delay=4ms\n  sync,syncdir name=orders-*/*.log from=3 times=1 error=EIO late # twice\n" +
		"write name=*.log short error=ENOSPC\r\nall block\n")
	must(t, err)
	want := []Rule{
		{Calls: []Call{CallSync}, Delay: 4 * time.Millisecond},
		{Calls: []Call{CallSync, CallSyncDir}, Name: "orders-*/*.log", From: 3, Times: 1, Err: syscall.EIO, Late: true},
		{Calls: []Call{CallWrite}, Name: "*.log", Short: true, Err: syscall.ENOSPC},
		{Block: true},
	}
	if !reflect.DeepEqual(rules, want) {
		t.Fatalf("%v", rules)
	}
	for _, e := range namedErrors() {
		if r, err := ParseRules("all error=" + e.name); err != nil || r[0].Err != e.err {
			t.Errorf("%s: %v, %v", e.name, r, err)
		}
	}
	if got := (Rule{Err: errors.New("x y")}).String(); got != `all error="x y"` {
		t.Error(got)
	}
}

func TestBadControlFileIsRefusedWithItsLine(t *testing.T) {
	for text, why := range map[string]string{
		"fsync delay=1ms":                  "no call",
		"sync":                             "does nothing",
		"sync name=*":                      "does nothing",
		"sync late":                        "late needs",
		"write short late error=EIO":       "either short or late",
		"sync delay=0s":                    "delay must",
		"sync delay=2h":                    "delay must",
		"sync delay=4":                     "delay must",
		"sync error=EFUN":                  "no error",
		"sync name=[ block":                "no pattern",
		"sync name= block":                 "no pattern",
		"sync from=0 block":                "from must",
		"sync times=x block":               "times must",
		"sync block block":                 "twice",
		"sync block=1":                     "no value",
		"sync delay":                       "without a value",
		"sync color=red":                   "no option",
		", block":                          "no call",
		strings.Repeat("all block\n", 300): "more than",
	} {
		_, err := ParseRules("\n" + text)
		var re *RuleError
		if !errors.As(err, &re) || re.Line < 2 || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "line") {
			t.Errorf("%q: %v", text[:min(40, len(text))], err)
		}
	}
	_, err := ParseRules(strings.Repeat("#", maxRuleText+1))
	var re *RuleError
	if !errors.As(err, &re) || re.Line != 0 {
		t.Error(err)
	}
}

func TestControlFileIsReloadedOnlyWhenItChanged(t *testing.T) {
	f := NewFault(NewMem(), nil)
	name := t.TempDir() + "/faults"
	must(t, f.LoadFile(name)) // not there: no rules
	must(t, os.WriteFile(name, []byte("mkdir times=1 error=EIO"), 0o600))
	must(t, f.LoadFile(name))
	wants(t, "mkdir", f.Mkdir("a"), syscall.EIO)
	must(t, f.LoadFile(name))
	must(t, f.Mkdir("a")) // its count went on
	must(t, os.WriteFile(name, []byte("nonsense"), 0o600))
	if err := f.LoadFile(name); err == nil || len(f.Rules()) != 1 || f.Rules()[0].Rule().Err != syscall.EIO {
		t.Fatal("a bad file changed something", err)
	}
	must(t, os.Remove(name))
	must(t, f.LoadFile(name))
	if len(f.Rules()) != 0 {
		t.Fatal("rules stay")
	}
	if err := f.LoadFile(t.TempDir()); err == nil {
		t.Fatal("a directory was loaded")
	}
}

// What Set put in force is not what was loaded: the same text is loaded anew.
func TestLoadAfterSetTakesEffect(t *testing.T) {
	f := NewFault(NewMem(), nil)
	f.Set([]Rule{{Err: syscall.EIO}})
	must(t, f.Load(""))
	must(t, f.Mkdir("a"))
	must(t, f.Load("mkdir error=EROFS"))
	f.Set(nil)
	must(t, f.Load("mkdir error=EROFS"))
	wants(t, "mkdir", f.Mkdir("b"), syscall.EROFS)
}

func TestInnerErrorsComeThrough(t *testing.T) {
	f := NewFault(NewMem(), nil)
	f.Add(Rule{Err: syscall.EIO, Late: true})
	_, err := f.Open("none", false)
	wants(t, "open", err, fs.ErrNotExist)
	_, err = f.ReadDir("none")
	wants(t, "readdir", err, fs.ErrNotExist)
}

func FuzzParseRules(f *testing.F) {
	for _, s := range []string{"sync delay=4ms", "all block # x", "write,close name=a/*.log from=2 times=3 short error=EDQUOT", "stat error=EIO late", "\x00=", "sync error="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ParseRules(text)
		if err != nil {
			if rules != nil {
				t.Fatal("rules and an error")
			}
			return
		}
		var again bytes.Buffer
		for _, r := range rules {
			again.WriteString(r.String() + "\n")
		}
		// Durations may be spelt longer than they were: what is said again may be past the bound of the text, never of the rules.
		if again.Len() > maxRuleText {
			return
		}
		got, err := ParseRules(again.String())
		if err != nil || !reflect.DeepEqual(got, rules) {
			t.Fatalf("%q, said again as %q: %v", text, again.String(), err)
		}
		NewFault(NewMem(), func(time.Duration) {}).Set(rules)
	})
}
