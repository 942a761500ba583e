package main

import (
	"fmt"
	"io"
	"time"

	"github.com/felixd/felixd/client"
)

// watchLine is a change, or news of a shard, in JSON.
type watchLine struct {
	Namespace   string  `json:"namespace"`
	Cache       string  `json:"cache"`
	Shard       uint32  `json:"shard"`
	Event       string  `json:"event"`
	Key         *string `json:"key,omitempty"`
	KeyBase64   *string `json:"key_base64,omitempty"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 *string `json:"value_base64,omitempty"`
	Offset      *uint64 `json:"offset,omitempty"`     // of the change: the version of the value
	ExpiresAt   string  `json:"expires_at,omitempty"` // when the value ends
	Resnapshot  bool    `json:"resnapshot,omitempty"` // changes before this one are missing
	Exact       *bool   `json:"exact,omitempty"`      // of shard_recovered: nothing is missing
	Count       *uint64 `json:"count,omitempty"`      // of snapshot: how many values it has, where that is known
	Error       string  `json:"error,omitempty"`
}

// printItem writes one item in one piece.
func (a *app) printItem(namespace, cache string, item client.CacheItem) error {
	if a.asJSON() {
		return writeJSON(a.sys.stdout, watchLineOf(namespace, cache, item))
	}
	_, err := fmt.Fprintln(a.sys.stdout, watchText(item))
	return err
}

// why is the error of an item. The end that a broker chose has no words of its own.
func why(err error) string {
	if err == io.EOF {
		return "the broker ended the watch, as when the cache is deleted"
	}
	return err.Error()
}

func watchLineOf(namespace, cache string, item client.CacheItem) watchLine {
	line := watchLine{Namespace: namespace, Cache: cache, Shard: item.Shard, Event: watchEvent(item), Resnapshot: item.Resnapshot}
	if item.Err != nil {
		line.Error = why(item.Err)
	}
	switch item.Kind {
	case client.ItemEvent:
		c := item.Change
		offset := uint64(c.Offset)
		line.Shard, line.Offset, line.Resnapshot = c.Shard, &offset, c.Resnapshot
		line.Key, line.KeyBase64 = blob(c.Key).members()
		if !c.Deleted {
			line.Value, line.ValueBase64 = blob(c.Value).members()
		}
		if !c.ExpiresAt.IsZero() {
			line.ExpiresAt = c.ExpiresAt.UTC().Format(time.RFC3339Nano)
		}
	case client.ItemShardRecovered:
		line.Exact = &item.Exact
	case client.ItemSnapshot:
		if item.Counted {
			line.Count = &item.Count
		}
	}
	return line
}

// watchEvent is the word for an item.
func watchEvent(item client.CacheItem) string {
	switch {
	case item.Kind != client.ItemEvent:
		return item.Kind.String()
	case item.Change.Deleted:
		return "delete"
	case item.Change.Retained:
		return "current"
	}
	return "put"
}

// watchText is an item for people: shard and offset, what happened, and to what.
func watchText(item client.CacheItem) string {
	c := item.Change
	switch item.Kind {
	case client.ItemEvent:
		text := fmt.Sprintf("%d/%-8d %-8s %s", c.Shard, c.Offset, watchEvent(item), escape([]byte(c.Key)))
		if !c.Deleted {
			text += " = " + escape(c.Value)
		}
		if !c.ExpiresAt.IsZero() {
			text += "  (until " + c.ExpiresAt.Local().Format(time.RFC3339) + ")"
		}
		return text
	case client.ItemSnapshot:
		return fmt.Sprintf("shard %d: %s", item.Shard, snapshotText(item))
	case client.ItemSnapshotEnd:
		return fmt.Sprintf("shard %d: those were all values, changes follow", item.Shard)
	case client.ItemShardLost:
		return fmt.Sprintf("shard %d: interrupted, about to go on: %s", item.Shard, why(item.Err))
	case client.ItemShardMoved:
		return fmt.Sprintf("shard %d: moved, about to follow: %v", item.Shard, item.Err)
	case client.ItemShardRecovered:
		if item.Exact {
			return fmt.Sprintf("shard %d: goes on, nothing is missing", item.Shard)
		}
		return fmt.Sprintf("shard %d: goes on with a snapshot, changes are missing", item.Shard)
	case client.ItemShardEnded:
		if item.Err != nil {
			return fmt.Sprintf("shard %d: ended: %v", item.Shard, item.Err)
		}
		return fmt.Sprintf("shard %d: ended", item.Shard)
	}
	return fmt.Sprintf("shard %d: %s", item.Shard, item.Kind)
}

func snapshotText(item client.CacheItem) string {
	follow := "its current values follow"
	if item.Counted {
		follow = plural(int(item.Count), "current value") + " follow"
		if item.Count == 1 {
			follow += "s"
		}
	}
	if item.Resnapshot {
		return "changes are missing: " + follow + ", other keys have none"
	}
	return follow
}
