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
