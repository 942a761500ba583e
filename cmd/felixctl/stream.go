package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// streamRecord is what felixctl shows of a stream.
type streamRecord struct {
	Stream            string `json:"stream"`
	Kind              string `json:"kind"`
	Shards            uint32 `json:"shards"`
	ReplicationFactor uint32 `json:"replication_factor"`
	Consistency       string `json:"consistency"`
	Delivery          string `json:"delivery"`
	Durable           bool   `json:"durable"`
	Region            string `json:"region"`
	Routing           string `json:"routing"` // absent: modulo
	Compress          bool   `json:"compress"`
	FsyncMode         string `json:"fsync_mode"` // of the broker; absent where the control plane does not know it
	Retention         struct {
		MaxAgeSeconds *uint64 `json:"max_age_seconds"`
		MaxSizeBytes  *uint64 `json:"max_size_bytes"`
	} `json:"retention"`
}

func streams() resource {
	return resource{
		noun: "stream", collection: "streams",
		head: []string{"NAME", "SHARDS", "REPLICATION", "CONSISTENCY", "DELIVERY", "DURABLE", "ROUTING"},
		row: func(raw json.RawMessage) ([]string, error) {
			var s streamRecord
			err := json.Unmarshal(raw, &s)
			return []string{s.Stream, fmt.Sprint(s.Shards), fmt.Sprint(s.ReplicationFactor), s.Consistency, s.Delivery,
				yesNo(s.Durable), orText(s.Routing, "modulo")}, err
		},
		facts: func(raw json.RawMessage) ([][]string, error) {
			var s streamRecord
			err := json.Unmarshal(raw, &s)
			facts := [][]string{
				{"name", s.Stream}, {"kind", s.Kind}, {"shards", fmt.Sprint(s.Shards)}, {"replication", fmt.Sprint(s.ReplicationFactor)},
				{"consistency", s.Consistency}, {"delivery", s.Delivery}, {"durable", yesNo(s.Durable)},
				{"routing", orText(s.Routing, "modulo")}, {"region", orText(s.Region, "any")},
				{"kept for", bound(s.Retention.MaxAgeSeconds, ageText)}, {"kept per shard", bound(s.Retention.MaxSizeBytes, sizeText)},
				{"compressed", yesNo(s.Compress)},
			}
			if s.FsyncMode != "" {
				facts = append(facts, []string{"fsync", s.FsyncMode})
			}
			return facts, err
		},
	}
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func bound(n *uint64, text func(uint64) string) string {
	if n == nil {
		return "as the broker decides"
	}
	return text(*n)
}

func (a *app) streamCommand() *cobra.Command {
	return group("stream", "List, show, create and remove streams",
		a.lsCommand(streams()), a.infoCommand(streams()), a.streamOffsetsCommand(), a.streamCreateCommand(), a.streamRmCommand())
}

// streamSpec is the body that creates a stream. What was not asked for is left out, and the control plane decides.
type streamSpec struct {
	Stream            string  `json:"stream"`
	Kind              *string `json:"kind,omitempty"`
	Shards            *uint32 `json:"shards,omitempty"`
	ReplicationFactor *uint32 `json:"replication_factor,omitempty"`
	Consistency       *string `json:"consistency,omitempty"`
	Delivery          *string `json:"delivery,omitempty"`
	Durable           *bool   `json:"durable,omitempty"`
	Routing           *string `json:"routing,omitempty"`
	Region            *string `json:"region,omitempty"`
	Compress          *bool   `json:"compress,omitempty"`
	Retention         *limits `json:"retention,omitempty"`
}

type limits struct {
	MaxAgeSeconds *uint64 `json:"max_age_seconds,omitempty"`
	MaxSizeBytes  *uint64 `json:"max_size_bytes,omitempty"`
}

func (a *app) streamCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a stream",
		Long: `Create a stream. What no flag says is the control plane's default: an in-memory stream with one shard. With --durable
its records are on disk before they are acknowledged, have offsets, and can be read again.

Retention removes the oldest records, whole files at a time, so a little more than the bounds is kept.

A stream that exists with the same settings is a success; one with other settings is refused.`,
		Example: `  felixctl stream create orders --shards 4 --durable --retention-age 24h --retention-bytes 1GiB --compress`,
		Args:    cobra.ExactArgs(1),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			spec, err := streamSpecOf(cmd.Flags(), args[0])
			if err != nil {
				return err
			}
			return a.create(cmd, streams(), args[0], spec)
		}),
	}
	f := cmd.Flags()
	f.Uint32("shards", 1, "shards; cannot be changed later")
	f.Uint32("replication", 1, "copies of each shard; cannot be changed later")
	f.Bool("durable", false, "keep records on disk")
	f.String("kind", "stream", "stream or queue")
	f.String("consistency", "leader", "leader or quorum")
	f.String("delivery", "at-least-once", "at-least-once or at-most-once")
	f.String("routing", "modulo", "how keys map to shards: modulo or jump-hash")
	f.String("region", "", "region to keep the stream in; default anywhere")
	f.Duration("retention-age", 0, "keep records so long, such as 24h; default as the broker decides")
	f.Uint64("retention-secs", 0, "the same in seconds")
	f.String("retention-bytes", "", "keep so much per shard, such as 1GiB or a number of bytes; default as the broker decides")
	f.Bool("compress", false, "compress records on disk once they are no longer written to")
	for _, e := range streamEnums() {
		fixedValues(cmd, e.flag, e.names()...)
	}
	return cmd
}

func (a *app) streamRmCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "rm NAME", Short: "Remove a stream and its records", Example: "  felixctl stream rm orders --yes", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error { return a.remove(cmd, streams(), args[0], yes) }),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}
