// Package effort says how much of a test campaign is run: one table for the whole project, with a short size for every landing
// and the full size that an issue is closed with.
//
// A short run meets the same faults as a full one, in fewer rounds. FELIX_EFFORT chooses: unset or "short", or "full". Under the race
// detector a short run is a fifth of itself, a full one is whole.
package effort

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Variable is the environment variable that chooses the size.
const Variable = "FELIX_EFFORT"

// Entry is one campaign.
type Entry struct {
	Name  string // lower_case, its unit last
	Short int    // size at every landing, at least 1; a fifth of it under the race detector
	Full  int    // size before an issue is closed, never below Short
	What  string // what is counted, and in which test
}

// Table is every campaign, sorted by name. The caller owns the slice.
func Table() []Entry {
	return []Entry{
		{"aborted_streams", 2000, 100_000, "streams broken off at any point of a request (test/hostile)"},
		{"actor_panic_rounds", 1000, 1000, "panics of one spawned actor, each settling all it had accepted (actors)"},
		{"busy_seconds", 4, 30, "seconds with every core taken by slowed shards (test/hostile)"},
		{"cache_bursts", 30, 20_000, "bursts of requests of one sender, each answer held against a map, on four kinds of caches (shardactor)"},
		{"cache_chaos_rounds", 600, 60_000, "rounds of requests to a cache shard to which everything happens, two hundred in each life (shardactor)"},
		{"cache_demo_samples", 100, 2000, "operations of each kind and size that the cache demo measures (demos/cache)"},
		{"cache_histories", 30, 500, "concurrent histories of each key of a log-backed cache, with crashes between, each judged whole (test/cache)"},
		{"cache_image_steps", 600, 20_000, "writes to a cache shard at whose disk operations crash images are taken, each opened and compared (shardactor)"},
		{"cached_keys", 40_000, 1_000_000, "keys of a log-backed cache whose memory, collection and restart are measured (test/cache)"},
		{"churned_connections", 250, 20_000, "connections that publish one record and go (test/streams)"},
		{"conformance_kills", 3, 20, "brokers killed under the campaigns of an unmodified client (test/conformance)"},
		{"conformance_operations", 2000, 20_000, "operations of its campaign on a cache of four shards (test/conformance)"},
		{"conformance_queue_records", 800, 20_000, "records of its campaign on a queue of several shards (test/conformance)"},
		{"conformance_rounds", 1, 20, "rounds of the whole suite with an unmodified client (test/conformance)"},
		{"connect_cycles", 200, 5000, "connections that subscribe, receive and end, a quarter of them killed (test/streams)"},
		{"crash_images", 2000, 20_000, "distinct disks that kills and power cuts leave of a log, each opened and compared (test/crash/images)"},
		{"credit_stress_ops", 20_000, 1_000_000, "operations on a permit pool from several goroutines (actors)"},
		{"deleted_streams", 12, 400, "streams deleted under publishers and subscribers (test/streams)"},
		{"drained_brokers", 4, 200, "brokers stopped in order under publishers and subscribers (test/streams)"},
		{"durable_sim_seeds", 120, 2000, "worlds of a node with a disk that is killed, cut off and broken, a third of them played twice, in full all (sim)"},
		{"failed_sync_rounds", 2, 40, "syncs failed under publishers, each answered with a restart (test/crash)"},
		{"fair_seconds", 2, 30, "seconds for which a tenant with one busy shard is measured beside one with a thousand (test/fair)"},
		{"fault_lives", 6, 120, "lives of a broker whose disk fails at random, each ended by a stop, a kill or a power cut (test/durable)"},
		{"frame_versions", 600, 65_535, "frame versions tried on a stream, both ends of the range among them (test/hostile)"},
		{"full_disk_rounds", 4, 100, "times that a disk is full under publishers and has room again (test/crash)"},
		{"fuzz_seconds", 5, 300, "seconds for each fuzz target; a landing gives less when the targets share its budget (.ci/run)"},
		{"group_shard_lives", 12, 600, "lives of shards with groups, of which actors fail and streams come and go, each ended in the midst of it (shardactor)"},
		{"group_stories", 400, 30_000, "lives of a group to which everything happens that can, each worked off at its end (shardactor/groupcore)"},
		{"idle_durable_shards", 500, 10_000, "durable shards that nobody uses, held by one daemon and opened again (test/crash)"},
		{"idle_seconds", 2, 60, "seconds in which three hundred durable shards must do nothing (test/durable)"},
		{"idle_subscriptions", 500, 10_000, "subscriptions that wait on one node (test/streams)"},
		{"junk_connections", 40, 2000, "connections with bytes of other protocols, for each port (test/hostile)"},
		{"killed_brokers", 1, 30, "brokers killed under clients with open requests (test/hostile)"},
		{"killed_daemons", 8, 200, "daemons killed under publishers, each started again on its files (test/crash)"},
		{"lifecycle_panics", 1000, 1000, "panics injected at each lifecycle message and each place of a batch (actors)"},
		{"lone_records", 300, 5000, "records appended one at a time beside bare writes and syncs (test/crash)"},
		{"mailbox_stress_ops", 50_000, 2_000_000, "posts, turns and stops on one mailbox from several goroutines (actors)"},
		{"malformed_frames", 8000, 1_000_000, "damaged frames sent to a decoder or a listening broker (wire, sessionactor)"},
		{"nack_millis", 1500, 600_000, "milliseconds for which a queue is given back at full speed (test/queue)"},
		{"narrow_transfers", 64, 1600, "transfers of 64 KiB each way over a path with a small MTU (test/hostile)"},
		{"paced_millis", 400, 30_000, "milliseconds of records at each pace, with a batching delay and without (test/streams)"},
		{"piped_records", 8000, 1_000_000, "lines that felixctl publishes while the daemon is killed (test/crash)"},
		{"poison_rounds", 4, 20, "records in a queue that kill their worker, one of a hundred each (test/queue)"},
		{"power_cuts", 6, 100, "power cuts under producers, and as many after the first record of a fresh node (test/durable)"},
		{"property_checks", 100, 10_000, "random cases for each property beside its naive twin (all cores)"},
		{"queue_kills", 3, 30, "daemons killed under the workers of a queue, each started again on its files (test/queue)"},
		{"queue_records", 2000, 100_000, "records that those workers settle, fail and give up (test/queue)"},
		{"records_at_restart", 10_000, 100_000, "records in each of ten shards whose start is timed (test/crash)"},
		{"redrive_crashes", 4, 20, "kills and power cuts while dead letters are redriven (test/queue)"},
		{"redriven_records", 100, 500, "dead letters that are redriven meanwhile (test/queue)"},
		{"refusal_rounds", 100, 1000, "rounds of good publishes among refused ones (test/streams)"},
		{"replayed_flights", 3, 10, "times a recorded connection is sent again (test/hostile)"},
		{"replayed_records", 2000, 200_000, "records replayed to slow readers (test/streams)"},
		{"retried_records", 10, 20, "records that fail in each way, three times each (test/queue)"},
		{"shared_sync_millis", 500, 10_000, "milliseconds in which 64 producers share the syncs of a slow disk (test/crash)"},
		{"silent_connections", 100, 500, "connections that never sign in, and as many unfinished handshakes (test/hostile)"},
		{"sim_seeds", 120, 2000, "worlds of brokers, clients and faults, a third of them played twice, in full all (sim)"},
		{"slow_consumer_millis", 2000, 5000, "milliseconds of each phase of the slow-consumer demo (demos/slowconsumer)"},
		{"slow_reader_mib", 32, 4096, "MiB of records published beside slow readers (test/streams)"},
		{"stalled_records", 600, 100_000, "records to each of nine good readers in each round, beside a stalled one (test/streams)"},
		{"store_damages", 800, 20_000, "single damages to the files of a store that was written by the real writer (storage/disklog)"},
		{"stream_churn_rounds", 2000, 50_000, "streams opened and finished on one connection (transport, sessionactor)"},
		{"subscribes_at_failure", 100, 500, "subscribes around one failure of their shard (test/streams)"},
		{"tightened_mib", 16, 256, "MiB of a stream whose retention is tightened to one of them (test/durable)"},
		{"timed_restarts", 5, 100, "starts after a kill that are timed (test/crash)"},
		{"token_cases", 5000, 200_000, "damaged tokens and permissions given to a verifier (controlplane/auth)"},
		{"torn_positions", 120, 10_000, "bytes of the last three batches at which a log is cut off; no more than there are (storage/disklog)"},
		{"unacknowledged_mib", 16, 1024, "MiB of records that nobody acknowledges, none of them lost (test/streams)"},
		{"waiting_kills", 1, 30, "daemons killed, and as many stopped in order, under a poll that waits (test/queue)"},
		{"waiting_millis", 1000, 5_000, "milliseconds in which waiting polls must take no time (test/queue)"},
		{"waiting_polls", 800, 10_000, "polls that wait at one group, over ten connections (test/queue)"},
	}
}

// Full reports whether FELIX_EFFORT asks for full campaigns. It panics on a value it does not know, so that a misspelt
// "full" can't pass for one.
func Full() bool {
	full, err := parse(os.Getenv(Variable))
	if err != nil {
		panic(err)
	}
	return full
}

// Size is how much of the campaign called name to run. It panics on a name that is not in the table.
func Size(name string) int {
	n, err := Lookup(name)
	if err != nil {
		panic(err)
	}
	return n
}

// Lookup is Size for a program that tells its user: its errors name the unknown campaign or the unknown effort.
func Lookup(name string) (int, error) {
	full, err := parse(os.Getenv(Variable))
	if err != nil {
		return 0, err
	}
	table := Table()
	i, found := slices.BinarySearchFunc(table, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
	switch {
	case !found:
		return 0, fmt.Errorf("effort: no campaign %q: add it to the table in internal/effort", name)
	case full:
		return table[i].Full, nil
	case Raced:
		return raced(table[i]), nil
	default:
		return table[i].Short, nil
	}
}

func parse(value string) (full bool, err error) {
	switch value {
	case "", "short":
		return false, nil
	case "full":
		return true, nil
	}
	return false, fmt.Errorf("effort: %s is %q: leave it unset, or set short or full", Variable, value)
}
