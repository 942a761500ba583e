package main

import (
	"fmt"
	"io"

	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/shardactor"
)

// memoryBudget is one bound on what a daemon can be made to hold.
type memoryBudget struct {
	what     string
	bytes    int64
	variable string // that sets it; "" is none
	gauge    string // in /metrics that shows it; "" is none
}

// memoryBudgets are all of them. None is part of another, so that their sum is what they allow.
func (c Config) memoryBudgets() []memoryBudget {
	l, session := c.Limits, sessionactor.DefaultOptions()
	budgets := []memoryBudget{
		{"records of ephemeral streams", l.TailBytes, "FELIX_EPHEMERAL_MEMORY_BYTES", "felix_tail_budget_bytes"},
		{"records kept for slow subscribers", l.ReaderBytes, "FELIX_SUBSCRIBER_MEMORY_BYTES", "felix_sub_reader_budget_bytes"},
		{"entries of caches in memory", l.CacheBytes, "FELIX_CACHE_MEMORY_BYTES", "felix_cache_budget_bytes"},
		{"requests without an outcome, and 64 MiB of frames that are judged", int64(l.PublishBytes) + sessionactor.JudgedFrames, "FELIX_BROKER_PUBLISH_INFLIGHT_BYTES", "felix_frame_budget_bytes"},
		{"answers that clients do not read", int64(l.AnswerBytes), "FELIX_ANSWER_MEMORY_BYTES", "felix_answer_budget_bytes"},
		{"large frames that are being read", session.Partial.Limit(), "", "felix_partial_frame_budget_bytes"},
		{"polls of groups that wait", int64(session.Polls.Limits().Node), "", "felix_group_poll_budget_bytes"},
		{"reads and subscribes that wait", int64(session.Parked.Limits().Node), "", "felix_parked_request_budget_bytes"},
		{"large records that event streams have in hand", int64(session.Large.Limit()), "", "felix_large_page_budget_bytes"},
		{"receive windows that have grown", windowBudget, "", ""},
	}
	if c.Durable.enabled() {
		budgets = append(budgets,
			memoryBudget{"keys and short values of caches in logs, and counters", c.Durable.CacheIndexBytes, "FELIX_CACHE_INDEX_BYTES", "felix_cache_index_budget_bytes"},
			memoryBudget{"records that groups have in flight", c.Durable.Groups.Claims.Node, "FELIX_GROUP_CLAIM_BYTES", "felix_group_claim_budget_bytes"},
			memoryBudget{"what groups keep, and each of them", c.Durable.Groups.Kept.Node, "FELIX_GROUP_STATE_BYTES", "felix_group_state_budget_bytes"},
			memoryBudget{"current values for watches of caches that begin", node.HeldSnapshots * l.WatchSnapshotBytes, "FELIX_CACHE_WATCH_SNAPSHOT_BYTES", "felix_cache_watch_snapshot_budget_bytes"},
			memoryBudget{"the same while they are gathered", node.HeldSnapshots * l.WatchSnapshotBytes, "FELIX_CACHE_WATCH_SNAPSHOT_BYTES", ""},
			memoryBudget{"values that deletes of caches in logs answer", shardactor.DefaultDiskOptions().RemovedBytes, "", ""},
			memoryBudget{"entity state of commits", shardactor.DefaultDiskOptions().StateBytes, "", "felix_state_budget_bytes"})
	}
	return budgets
}

// showMemory prints the budgets and their sum, and what comes on top.
func showMemory(w io.Writer, c Config) {
	sum := int64(0)
	for _, b := range c.memoryBudgets() {
		fmt.Fprintf(w, "%d\t%s\t%s\n", b.bytes, b.what, b.variable)
		sum += b.bytes
	}
	fmt.Fprintf(w, "%d\tsum, and on top of it 524288 for each connection, 65536 for each stream that is being read, 18432 for each subscription and 196608 more for one whose client does not take what it is sent\t\n", sum)
}
