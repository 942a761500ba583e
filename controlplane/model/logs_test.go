package model

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestLogsAreNotedByShardAndNeverReplaced(t *testing.T) {
	s := mustRecord(t, `{"stream":"s","shards":3,"durable":true}`)
	one, two := LogID{1}, LogID{15: 2}
	noted, err := s.WithLogs([]ShardLog{{Shard: 2, Log: two}})
	if err != nil || s.Logs != "" || noted.Log(2) != two || noted.Log(0) != (LogID{}) || noted.Log(3) != (LogID{}) || noted.Validate() != nil {
		t.Fatalf("%x, %v", noted.Logs, err)
	}
	if again, err := noted.WithLogs([]ShardLog{{Shard: 2, Log: two}, {Shard: 0, Log: one}}); err != nil || again.Log(0) != one || again.Log(2) != two {
		t.Fatalf("%x, %v", again.Logs, err)
	}
	if _, err := noted.WithLogs([]ShardLog{{Shard: 2, Log: one}}); !errors.Is(err, ErrLogDiffers) {
		t.Errorf("another log: %v", err)
	}
	for _, r := range []ShardLog{{Shard: 3, Log: one}, {Shard: 1}} {
		if _, err := noted.WithLogs([]ShardLog{r}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	s.Durable = false
	if _, err := s.WithLogs([]ShardLog{{Log: one}}); !errors.Is(err, ErrLogDiffers) {
		t.Errorf("a stream that is not durable: %v", err)
	}
}

func TestLogsOfAnotherLengthOrOfAnEphemeralStreamAreInvalid(t *testing.T) {
	s := mustRecord(t, `{"stream":"s","shards":2,"durable":true,"routing":"modulo"}`)
	for _, logs := range []string{"x", strings.Repeat("x", 16), strings.Repeat("x", 33)} {
		if s.Logs = logs; fieldOf(s.Validate()) != "logs" {
			t.Errorf("%d bytes: %v", len(logs), s.Validate())
		}
	}
	s.Logs, s.Durable = strings.Repeat("x", 32), false
	if fieldOf(s.Validate()) != "logs" {
		t.Errorf("ephemeral: %v", s.Validate())
	}
}

// What brokers report is not what clients configure: it is not in requests and answers.
func TestLogsAreNoPartOfTheAPI(t *testing.T) {
	s := mustRecord(t, `{"stream":"s","durable":true,"routing":"modulo"}`)
	s.Logs = strings.Repeat("x", 16)
	text, err := json.Marshal(s)
	var back Stream
	if err != nil || strings.Contains(strings.ToLower(string(text)), "logs") || json.Unmarshal(text, &back) != nil || back.Logs != "" {
		t.Fatalf("%s, %v", text, err)
	}
}

func TestAPatchKeepsTheLogs(t *testing.T) {
	s := mustRecord(t, `{"stream":"s","durable":true,"routing":"modulo"}`)
	s.Logs = strings.Repeat("x", 16)
	kept, err := StreamPatch{Durable: ptr(true), Compress: ptr(true)}.Apply(s)
	if err != nil || kept.Logs != s.Logs || !kept.Compress {
		t.Fatalf("%+v, %v", kept, err)
	}
}

func mustCache(t *testing.T, spec CacheSpec) Cache {
	t.Helper()
	spec.Cache = "c"
	c, err := spec.Record("t", "n", 3)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestACachesLogsAreNotedUnlessItIsInMemory(t *testing.T) {
	c, one, two := mustCache(t, CacheSpec{Shards: ptr[uint32](2)}), LogID{1}, LogID{15: 2}
	noted, err := c.WithLogs([]ShardLog{{Shard: 1, Log: two}})
	if err != nil || c.Logs != "" || noted.Log(1) != two || noted.Log(0) != (LogID{}) || noted.Validate() != nil {
		t.Fatalf("%x, %v", noted.Logs, err)
	}
	if again, err := noted.WithLogs(nil); err != nil || again != noted {
		t.Fatalf("nothing reported: %x, %v", again.Logs, err)
	}
	if _, err := noted.WithLogs([]ShardLog{{Shard: 0, Log: one}, {Shard: 1, Log: one}}); !errors.Is(err, ErrLogDiffers) {
		t.Errorf("another log: %v", err)
	}
	if _, err := noted.WithLogs([]ShardLog{{Shard: 2, Log: one}}); fieldOf(err) != "shard" || !strings.Contains(err.Error(), "the cache has 2 shards") {
		t.Errorf("a shard that there is not: %v", err)
	}
	if kept, err := (CachePatch{DisplayName: ptr("x")}).Apply(noted); err != nil || kept.Logs != noted.Logs {
		t.Errorf("a patch left %x, %v", kept.Logs, err)
	}
	noted.InMemory = true
	if fieldOf(noted.Validate()) != "logs" {
		t.Errorf("in memory with logs: %v", noted.Validate())
	}
	if _, err := mustCache(t, CacheSpec{InMemory: ptr(true)}).WithLogs([]ShardLog{{Log: one}}); !errors.Is(err, ErrLogDiffers) {
		t.Errorf("a report for a cache in memory: %v", err)
	}
	if c.Logs = "x"; fieldOf(c.Validate()) != "logs" {
		t.Errorf("logs of another length: %v", c.Validate())
	}
}

// What is the default is not said, so that whoever knows of no caches in memory reads the same as before.
func TestOnlyACacheInMemorySaysSoAndNoneItsLogs(t *testing.T) {
	c := mustCache(t, CacheSpec{})
	c.Logs = strings.Repeat("x", 16)
	text, err := json.Marshal(c)
	if err != nil || strings.Contains(string(text), "in_memory") || strings.Contains(strings.ToLower(string(text)), "logs") {
		t.Fatalf("%s, %v", text, err)
	}
	var back Cache
	text, err = json.Marshal(mustCache(t, CacheSpec{InMemory: ptr(true)}))
	if err != nil || json.Unmarshal(text, &back) != nil || !back.InMemory {
		t.Fatalf("%s, %v", text, err)
	}
}
