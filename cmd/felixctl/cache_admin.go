package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// cacheRecord is what felixctl shows of a cache.
type cacheRecord struct {
	Cache             string `json:"cache"`
	DisplayName       string `json:"display_name"`
	Shards            uint32 `json:"shards"`
	ReplicationFactor uint32 `json:"replication_factor"`
	Consistency       string `json:"consistency"`
	InMemory          bool   `json:"in_memory"`
}

// kept says where the entries are.
func (c cacheRecord) kept() string {
	if c.InMemory {
		return "in memory"
	}
	return "in a log"
}

// keptLong says it with what the catalog cannot know.
func (c cacheRecord) keptLong() string {
	if c.InMemory {
		return c.kept() + ": evicts, no watches, no counters"
	}
	return c.kept() + " (in memory on a broker without storage)"
}

func caches() resource {
	return resource{
		noun: "cache", collection: "caches",
		head: []string{"NAME", "SHARDS", "REPLICATION", "CONSISTENCY", "KEPT", "DISPLAY NAME"},
		row: func(raw json.RawMessage) ([]string, error) {
			var c cacheRecord
			err := json.Unmarshal(raw, &c)
			return []string{c.Cache, fmt.Sprint(c.Shards), fmt.Sprint(c.ReplicationFactor), c.Consistency, c.kept(), escape([]byte(c.DisplayName))}, err
		},
		facts: func(raw json.RawMessage) ([][]string, error) {
			var c cacheRecord
			err := json.Unmarshal(raw, &c)
			return [][]string{
				{"name", c.Cache}, {"display name", escape([]byte(c.DisplayName))}, {"shards", fmt.Sprint(c.Shards)},
				{"replication", fmt.Sprint(c.ReplicationFactor)}, {"consistency", c.Consistency},
				{"kept", c.keptLong()},
			}, err
		},
	}
}

// cacheSpec is the body that creates a cache. What was not asked for is left out, and the control plane decides.
type cacheSpec struct {
	Cache             string  `json:"cache"`
	DisplayName       *string `json:"display_name,omitempty"`
	Shards            *uint32 `json:"shards,omitempty"`
	ReplicationFactor *uint32 `json:"replication_factor,omitempty"`
	Consistency       *string `json:"consistency,omitempty"`
	InMemory          *bool   `json:"in_memory,omitempty"`
}

func (a *app) cacheCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a cache",
		Long: `Create a cache. What no flag says is the control plane's default: one shard, one copy, kept in a log.
A cache that exists with the same settings is a success; one with other settings is refused.

Entries that are kept in a log survive restarts with their times to live, can be watched, and are never evicted: a put
that finds no room is refused. With --in-memory, and on a broker without storage, they are in memory alone: a
restart empties the cache, the least recently used make room for others, and it has no watches and no counters.`,
		Example: `  felixctl cache create users --shards 4
  felixctl cache create thumbnails --in-memory`,
		Args: cobra.ExactArgs(1),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			set := cmd.Flags()
			spec := &cacheSpec{Cache: args[0]}
			var err error
			if spec.Consistency, err = consistencyEnum().read(set); err != nil {
				return err
			}
			if spec.Shards, err = given(set, "shards", set.GetUint32); err != nil {
				return err
			}
			if spec.ReplicationFactor, err = given(set, "replication", set.GetUint32); err != nil {
				return err
			}
			if spec.InMemory, err = given(set, "in-memory", set.GetBool); err != nil {
				return err
			}
			if spec.DisplayName, err = given(set, "display-name", set.GetString); err != nil {
				return err
			}
			return a.create(cmd, caches(), args[0], spec)
		}),
	}
	f := cmd.Flags()
	f.Uint32("shards", 1, "shards; cannot be changed later")
	f.Uint32("replication", 1, "copies of each shard; cannot be changed later")
	f.String("consistency", "leader", "leader or quorum")
	f.Bool("in-memory", false, "keep entries in memory alone; cannot be changed later")
	f.String("display-name", "", "label for people")
	fixedValues(cmd, "consistency", consistencyEnum().names()...)
	return cmd
}
