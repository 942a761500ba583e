package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/internal/bench/machine"
)

func TestARedisServerIsStartedOverTLSAndLeavesNothingBehind(t *testing.T) {
	t.Setenv(redisVariable, "1")
	t.Chdir(t.TempDir())
	folder, ctx := "here", newContext(t) // a relative one: the server is told where it is from anywhere
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := StartRedis(ctx, RedisPlan{Program: os.Args[0], Folder: folder, CPU: machine.Any})
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != "7.0-fake" || r.label() != "redis in memory" {
		t.Errorf("version %q, label %q", r.Version, r.label())
	}
	usage, err := r.Usage(ctx)
	if err != nil || usage.CPU == nil || *usage.CPU != 1750*time.Millisecond {
		t.Errorf("usage %+v, %v", usage, err)
	}
	process := r.cmd.Process
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := process.Signal(os.Interrupt); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the process is still there: %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestARedisServerThatDoesNotStartSaysWhy(t *testing.T) {
	t.Setenv(redisVariable, "broken")
	folder := t.TempDir()
	_, err := StartRedis(newContext(t), RedisPlan{Program: os.Args[0], Folder: folder, CPU: machine.Any})
	if err == nil || !strings.Contains(err.Error(), "it ended at once: *** FATAL CONFIG FILE ERROR *** Bad directive") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := StartRedis(newContext(t), RedisPlan{Program: folder + "/nothing", Folder: folder, CPU: machine.Any}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestCallersMayShareAConnectionOrHaveTheirOwn(t *testing.T) {
	server := startFakeRedis(t, false)
	for _, conns := range []int{1, 3, 8} {
		for _, op := range []CacheOp{Put, Hit, Miss} {
			callers, err := OpenRedis(newContext(t), RedisCalls{Server: server, Op: op, Payload: 100, Keys: 16, Callers: 8, Conns: conns})
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for _, c := range callers.All {
				all.Go(func() {
					for n := range uint64(50) {
						if err := c.Call(context.Background(), n); err != nil {
							t.Errorf("%d connections, %s: %v", conns, op, err)
							return
						}
					}
				})
			}
			all.Wait()
			if err := callers.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAnswersOnASharedConnectionGoToThoseWhoAsked(t *testing.T) {
	server, ctx := startFakeRedis(t, false), newContext(t)
	conn, err := dialRedis(ctx, ctx, server.addr, server.config)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			key, room := fmt.Appendf(nil, "key %d", i), make([]byte, 64)
			for n := range 50 {
				want := fmt.Appendf(nil, "%d of %d", n, i)
				if _, _, err := conn.do(room, []byte("SET"), key, want); err != nil {
					t.Error(err)
					return
				}
				if got, found, err := conn.do(room, []byte("GET"), key); err != nil || !found || !bytes.Equal(got, want) {
					t.Errorf("got %q, %v, %v; want %q", got, found, err, want)
					return
				}
			}
		})
	}
	all.Wait()
	var no *RedisError
	if _, _, err := conn.do(nil, []byte("NONSENSE")); !errors.As(err, &no) || !strings.Contains(no.Text, "unknown command") {
		t.Errorf("got %v", err)
	}
	if _, refused := refusal(orRedisRefusal(no)); !refused {
		t.Error("what the server says no to is no refusal")
	}
	if _, found, err := conn.do(make([]byte, 8), []byte("GET"), []byte("nobody's")); found || err != nil {
		t.Errorf("found is %v, %v: a refusal has spoilt the connection", found, err)
	}
	if err := conn.close(); err != nil {
		t.Error(err)
	}
	if _, _, err := conn.do(nil, []byte("GET"), []byte("k")); err == nil {
		t.Error("a closed connection answers")
	}
}

func TestAnswerThatIsNoneIsAnErrorAndNeverTakesMoreThanThereIsRoomFor(t *testing.T) {
	for _, c := range []struct {
		answer, value string
		found         bool
		wrong         string
	}{
		{answer: "+OK\r\n", value: "OK", found: true}, {answer: "$3\r\na\r\n\r\n", value: "a\r\n", found: true}, {answer: "$0\r\n\r\n", found: true},
		{answer: "$-1\r\n"}, {answer: "-ERR no\r\n", wrong: "redis-server: ERR no"},
		{answer: "$9\r\n123456789\r\n", wrong: "9 bytes where at most 8"}, {answer: "$99999999999\r\n", wrong: "bytes where at most 8"},
		{answer: "$-2\r\n", wrong: "no length"}, {answer: "$x\r\n", wrong: "no length"}, {answer: "$3\r\nabc12", wrong: "no end behind 3 bytes"},
		{answer: "$3\r\nab", wrong: "unexpected EOF"}, {answer: "$3\r\nabc", wrong: "no end behind 3 bytes"}, {answer: "\r\n", wrong: "no line of its protocol"},
		{answer: ":12\r\n", wrong: "not asked for"}, {answer: "+OK\n", wrong: "no line of its protocol"}, {answer: "+OK", wrong: "EOF"},
		{answer: "+" + strings.Repeat("x", redisLine), wrong: "buffer full"},
	} {
		value, found, err := readReply(bufio.NewReaderSize(strings.NewReader(c.answer), redisLine), make([]byte, 8))
		if string(value) != c.value || found != c.found || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%.20q: %q, %v, %v; want %q, %v, an error with %q", c.answer, value, found, err, c.value, c.found, c.wrong)
		}
	}
}

// mission 241, mission 242, mission 243
func TestCachesOfBothKindsAreMeasuredBesideEchoAndRedis(t *testing.T) {
	f, raw := newFelixd(t, testbroker.Options{}), newRaw(t)
	f.Meter = &fakeMeter{taken: func() uint64 { return 0 }} // one that has synced nothing
	s := CacheSpec{
		Name: "cache", Title: "cache", Ops: []CacheOp{Put, Hit, Miss}, Payload: 64, Keys: 8, Concurrency: 4, Conns: 1,
		Sides: []CacheSide{
			{Label: "in memory", Cache: "c", Targets: []CacheGoal{{Put, 1.8}, {Hit, 1.6}}},
			{Label: "log-backed", Cache: "c", Durable: true},
		},
		Redis: RedisBeside{Memory: startFakeRedis(t, false), Durable: startFakeRedis(t, true), Conns: 1},
	}
	r := measured(t, CacheExperiment(f, raw, s), nil)
	var cases []string
	for _, c := range r.Cases {
		cases = append(cases, c.Label)
	}
	want := "felixd in memory put,felixd in memory hit,felixd in memory miss,felixd log-backed put,felixd log-backed hit,felixd log-backed miss,raw echo," +
		"redis in memory put,redis in memory hit,redis in memory miss,redis appendfsync always put"
	if got := strings.Join(cases, ","); got != want {
		t.Errorf("cases %s", got)
	}
	against := make(map[string]string)
	for _, ratio := range r.Ratios {
		against[ratio.Label] = ratio.Of + " / " + ratio.By
	}
	for label, pair := range map[string]string{
		"cache, in memory put p50":                        "felixd in memory put / raw echo",
		"cache, log-backed miss p99":                      "felixd log-backed miss / raw echo",
		"cache, in memory put p50, against redis":         "felixd in memory put / redis in memory put",
		"cache, log-backed put p50, against redis":        "felixd log-backed put / redis appendfsync always put",
		"cache, log-backed hit p50, against redis":        "felixd log-backed hit / redis in memory hit",
		"cache, in memory miss p50, against redis":        "felixd in memory miss / redis in memory miss",
		"cache, log-backed put: server CPU us per record": "felixd log-backed put / raw echo",
	} {
		if against[label] != pair {
			t.Errorf("%s: %q, want %q", label, against[label], pair)
		}
	}
	if judged(r) != 2 {
		t.Errorf("%d ratios have targets, want 2", judged(r))
	}
	if notes := strings.Join(r.AllNotes(), "\n"); strings.Count(notes, "the broker synced nothing") != 1 || !strings.Contains(notes, "felixd log-backed put: the broker synced nothing") {
		t.Errorf("notes %q", notes)
	}
}

func TestAReportSaysThatThereIsNoRedis(t *testing.T) {
	s := CacheSpec{
		Name: "cache", Title: "cache", Sides: []CacheSide{{Cache: "c"}}, Ops: []CacheOp{Hit}, Keys: 8, Concurrency: 4, Conns: 1,
		Redis: RedisBeside{Missing: "no redis-server"},
	}
	r := measured(t, CacheExperiment(newFelixd(t, testbroker.Options{}), nil, s), nil)
	if len(r.Notes) != 1 || r.Notes[0] != "no redis-server" || len(r.Cases) != 1 || len(r.Ratios) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestWhatFillsACacheGoesOnceThroughAllKeysAndEndsAtAnError(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[int]int)
	put := func(_ context.Context, caller, key int) error {
		mu.Lock()
		defer mu.Unlock()
		if key%3 != caller {
			t.Errorf("caller %d writes key %d", caller, key)
		}
		seen[key]++
		return nil
	}
	if err := fill(t.Context(), 3, 10, put); err != nil || len(seen) != 10 {
		t.Fatalf("wrote %v, %v", seen, err)
	}
	broken := errors.New("broken")
	if err := fill(t.Context(), 3, 1_000_000, func(context.Context, int, int) error { return broken }); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
}
