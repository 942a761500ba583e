package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// queued is a broker with records "r0", "r1", ... in shard 0 of orders.
func queued(t *testing.T, n int) *testbroker.Broker {
	b := newBroker(t)
	for i := range n {
		b.Append("default/orders", 0, testbroker.Region(fmt.Sprintf("r%d", i)))
	}
	return b
}

func wantOffsets(t *testing.T, what string, got []id.Offset, want ...id.Offset) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func TestPollClaimsAndPrintsWhatIsThere(t *testing.T) {
	b := queued(t, 3)
	c := newCLI(t).at(b, "")
	wantText(t, c.run(exitOK, "group", "poll", "orders", "g", "--count", "2"), "r0\nr1\n")
	out := c.run(exitOK, "group", "poll", "orders", "g", "--count", "2", "--json")
	wantContains(t, out, `{"namespace":"default","stream":"orders","group":"g","shard":0,"offset":2,"attempts":1,`, `"payload":"r2"}`)
	wantOffsets(t, "claimed", b.Group("default/orders", 0, "g").Held, 0, 1, 2)
	wantText(t, c.run(exitOK, "group", "poll", "orders", "g"), "")
	c.run(exitOK, "group", "nack", "orders", "g", "1")
	wantText(t, c.onTerminal().run(exitOK, "group", "poll", "orders", "g"), "0/1        2  r1\n")
}

func TestPollOfAllShardsTakesNoMoreThanItWasAskedFor(t *testing.T) {
	b := newBroker(t)
	for shard := range uint32(4) {
		b.Append("default/wide", shard, testbroker.Region("a"))
		b.Append("default/wide", shard, testbroker.Region("b"))
	}
	c := newCLI(t).at(b, "")
	wantText(t, c.run(exitOK, "group", "poll", "wide", "g", "--count", "3"), "a\nb\na\n")
	wantText(t, c.run(exitOK, "group", "poll", "wide", "g", "--count", "9", "--shard", "3", "--ack"), "a\nb\n")
	held := 0
	for shard := range uint32(4) {
		held += len(b.Group("default/wide", shard, "g").Held)
	}
	if at := b.Group("default/wide", 3, "g").Cursor; held != 3 || at != 2 {
		t.Errorf("%d records are claimed, want 3; shard 3 is at %d, want 2", held, at)
	}
}

func TestMemberTakesBackWhatItHadClaimed(t *testing.T) {
	b := queued(t, 3)
	c := newCLI(t).at(b, "").onTerminal()
	wantText(t, c.run(exitOK, "group", "poll", "orders", "g", "--count", "2", "--member", "m", "--visibility", "1h"), "0/0        1  r0\n0/1        1  r1\n")
	wantText(t, c.run(exitOK, "group", "poll", "orders", "g", "--member", "other", "--reclaim"), "0/2        1  r2\n")
	wantText(t, c.run(exitOK, "group", "poll", "orders", "g", "--count", "2", "--member", "m", "--reclaim"), "0/0        2  r0\n0/1        2  r1\n")
}

func TestPollWaitsForARecord(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"orders", "wide"} { // one shard, and several, of which the last has it
		b := newBroker(t)
		c := newCLI(t).at(b, "")
		_, wait := c.start("group", "poll", stream, "g", "--wait", "60s", "--ack")
		shard := map[string]uint32{"orders": 0, "wide": 3}[stream]
		b.Append("default/"+stream, shard, testbroker.Region("late"))
		if code := wait(); code != exitOK {
			t.Fatalf("exit code %d: %s", code, c.stderr)
		}
		wantText(t, c.stdout.String(), "late\n")
		if at := b.Group("default/"+stream, shard, "g").Cursor; at != 1 {
			t.Errorf("%s: the record was not acked", stream)
		}
	}
}

func TestInterruptedPollIsASuccess(t *testing.T) {
	asked := make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"default/orders": 1}, Durable: true, OnFrame: func(_ *testbroker.Stream, f testbroker.Frame) bool {
		if m, ok := f.Message().(*wire.GroupPoll); ok && m.WaitMillis > 0 {
			once()
		}
		return false
	}})
	c := newCLI(t).at(b, "")
	stop, _ := c.start("group", "poll", "orders", "g", "--wait", "60s")
	<-asked
	if code := stop(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.stderr)
	}
}

func TestAckFinishesAndNackGivesBack(t *testing.T) {
	b := queued(t, 4)
	c := newCLI(t).at(b, "")
	c.run(exitOK, "group", "poll", "orders", "g", "--count", "4")
	wantText(t, c.run(exitOK, "group", "ack", "orders", "g", "0", "0/2", "--json"),
		`{"namespace":"default","stream":"orders","group":"g","shard":0,"offset":0,"status":"acked"}`+"\n"+
			`{"namespace":"default","stream":"orders","group":"g","shard":0,"offset":2,"status":"acked"}`+"\n")
	c.run(exitOK, "group", "nack", "orders", "g", "1", "--attempts", "1", "--delay", "1h")
	c.run(exitOK, "group", "nack", "orders", "g", "3", "--dead-letter")
	v := b.Group("default/orders", 0, "g")
	wantOffsets(t, "owed", v.Owed, 1)
	wantOffsets(t, "dead letters", v.DeadLetters, 3)
	wantOffsets(t, "claimed", v.Held)
	c.run(exitRefused, "group", "nack", "orders", "g", "1", "--attempts", "7")
	wantContains(t, c.stderr.String(), "the claim is gone")
	wantText(t, c.onTerminal().run(exitOK, "group", "ack", "orders", "g", "0"), "acked 0/0 of group \"g\" of default/orders\n")
}

func TestSettlingStopsAtTheFirstRefusalAndSaysWhatWasDone(t *testing.T) {
	c := newCLI(t).at(queued(t, 2), "")
	c.run(exitOK, "group", "poll", "orders", "g", "--count", "2")
	c.run(exitRefused, "group", "ack", "orders", "g", "0", "77", "1")
	wantContains(t, c.stderr.String(), "(1 record acked before)")
}

func TestOffsetWithoutAShardIsRefusedWhereThereAreSeveral(t *testing.T) {
	b := newBroker(t)
	b.Append("default/wide", 2, testbroker.Region("x"))
	c := newCLI(t).at(b, "")
	c.run(exitOK, "group", "poll", "wide", "g")
	c.run(exitUsage, "group", "ack", "wide", "g", "2/0", "0")
	wantContains(t, c.stderr.String(), "stream default/wide has 4 shards, each with offsets of its own; use SHARD/OFFSET, or --shard")
	wantOffsets(t, "claimed", b.Group("default/wide", 2, "g").Held, 0)
	c.run(exitOK, "group", "ack", "wide", "g", "0", "--shard", "2")
	wantOffsets(t, "claimed", b.Group("default/wide", 2, "g").Held)
}

func TestInfoAndLagTellHowFarAGroupIs(t *testing.T) {
	b := queued(t, 5)
	c := newCLI(t).at(b, "")
	c.run(exitOK, "group", "poll", "orders", "g", "--count", "4")
	c.run(exitOK, "group", "ack", "orders", "g", "0")
	c.run(exitOK, "group", "nack", "orders", "g", "1")
	c.run(exitOK, "group", "nack", "orders", "g", "2", "--dead-letter")
	const shard = `"lag":4,"in_flight":1,"owed":1,"dead_letters":1`
	want := `{"namespace":"default","stream":"orders","group":"g",` + shard + `,"shards":[{"shard":0,"committed":1,"tail":5,` + shard + "}]}\n"
	wantText(t, c.run(exitOK, "group", "info", "orders", "g"), want)
	wantText(t, c.run(exitOK, "group", "lag", "orders", "g"), "4\n")
	wantText(t, c.run(exitOK, "group", "lag", "orders", "g", "--json"), want)
	wantContains(t, c.run(exitOK, "group", "info", "wide", "g", "--shard", "3"), `"shards":[{"shard":3,`)
	c.run(exitNotFound, "group", "info", "nosuch", "g")
	c.onTerminal()
	wantText(t, c.run(exitOK, "group", "info", "orders", "g"),
		"SHARD  COMMITTED  TAIL  LAG  IN FLIGHT  OWED  DEAD\n0      1          5     4    1          1     1\n")
	wantText(t, c.run(exitOK, "group", "lag", "orders", "g"), "4\n")
}

// A script that waits for a lag of 0 must not go on while dead letters that were redriven are owed, or are worked on: they are below the position.
func TestTheLagIsNotZeroWhileRedrivenRecordsAreUnfinished(t *testing.T) {
	b := queued(t, 2)
	c := newCLI(t).at(b, "")
	lag := func(want string) {
		t.Helper()
		wantText(t, c.run(exitOK, "group", "lag", "orders", "g"), want+"\n")
	}
	c.run(exitOK, "group", "poll", "orders", "g", "--count", "2")
	c.run(exitOK, "group", "nack", "orders", "g", "0", "1", "--dead-letter")
	lag("0")
	c.run(exitOK, "group", "redrive", "orders", "g", "--all")
	lag("2")
	c.run(exitOK, "group", "poll", "orders", "g")
	lag("2")
	c.run(exitOK, "group", "ack", "orders", "g", "0")
	lag("1")
	c.run(exitOK, "group", "poll", "orders", "g", "--ack")
	lag("0")
}

func TestDeadLettersAreListedReadRedrivenAndForgotten(t *testing.T) {
	b := queued(t, 4)
	c := newCLI(t).at(b, "")
	c.run(exitOK, "group", "poll", "orders", "g", "--count", "4")
	c.run(exitOK, "group", "nack", "orders", "g", "0", "1", "2", "3", "--dead-letter")
	wantContains(t, c.run(exitOK, "group", "dead-letters", "orders", "g"), `"group":"g","shard":0,"offset":0}`+"\n", `"offset":3}`)
	wantContains(t, c.run(exitOK, "group", "dead-letters", "orders", "g", "--payloads"), `"payload":"r2"}`)
	c.run(exitOK, "group", "redrive", "orders", "g", "0/1")
	wantOffsets(t, "owed", b.Group("default/orders", 0, "g").Owed, 1)
	c.run(exitOK, "group", "discard", "orders", "g", "3")
	wantOffsets(t, "dead letters", b.Group("default/orders", 0, "g").DeadLetters, 0, 2)
	c.run(exitUsage, "group", "discard", "orders", "g", "--all")
	wantContains(t, c.stderr.String(), `discard 2 dead letters of group "g" of default/orders needs --yes`)
	for _, wrong := range [][]string{{"redrive", "orders", "g"}, {"redrive", "orders", "g", "0", "--all"}} {
		c.run(exitUsage, append([]string{"group"}, wrong...)...)
	}
	c.run(exitOK, "group", "discard", "orders", "g", "--all", "--yes")
	wantText(t, c.run(exitOK, "group", "dead-letters", "orders", "g"), "")
	wantText(t, c.run(exitOK, "group", "redrive", "orders", "g", "--all"), "")
	c.onTerminal()
	c.run(exitOK, "group", "poll", "orders", "g")
	c.run(exitOK, "group", "nack", "orders", "g", "1", "--dead-letter")
	wantText(t, c.run(exitOK, "group", "dead-letters", "orders", "g", "--payloads"), "0/1        r1\n")
	wantText(t, c.run(exitOK, "group", "redrive", "orders", "g", "--all"), "redrove 0/1 of group \"g\" of default/orders\n")
}

func TestDeadLetterThatTheStreamDroppedHasNoPayload(t *testing.T) {
	b := queued(t, 2)
	c := newCLI(t).at(b, "")
	c.run(exitOK, "group", "poll", "orders", "g")
	c.run(exitOK, "group", "nack", "orders", "g", "0", "--dead-letter")
	b.Trim("default/orders", 0, 1)
	wantContains(t, c.run(exitOK, "group", "dead-letters", "orders", "g", "--payloads"), `"offset":0,"gone":true}`)
	wantContains(t, c.onTerminal().run(exitOK, "group", "dead-letters", "orders", "g", "--payloads"), "(not kept any more)")
}

func TestSeekMovesAGroupAfterAsking(t *testing.T) {
	b := queued(t, 4)
	c := newCLI(t).at(b, "")
	wantText(t, c.run(exitOK, "group", "seek", "orders", "g", "--to", "latest", "--if-new"),
		`{"namespace":"default","stream":"orders","group":"g","shard":0,"offset":4,"moved":true}`+"\n")
	wantContains(t, c.run(exitOK, "group", "seek", "orders", "g", "--to", "earliest", "--if-new"), `"offset":4,"moved":false}`)
	c.run(exitUsage, "group", "seek", "orders", "g", "--to", "2")
	wantContains(t, c.stderr.String(), `move group "g" of default/orders to 2 needs --yes`)
	wantContains(t, c.run(exitOK, "group", "seek", "orders", "g", "--to", "2", "--yes"), `"offset":2,"moved":true}`)
	c.run(exitRefused, "group", "seek", "orders", "g", "--to", "9", "--yes")
	c.run(exitUsage, "group", "seek", "wide", "g", "--to", "0", "--yes")
	wantContains(t, c.stderr.String(), "name one --shard")
	c.run(exitUsage, "group", "seek", "orders", "g", "--to", "soon", "--yes")
	c.run(exitUsage, "group", "seek", "orders", "g", "--yes")
	c.onTerminal().input("y\n")
	wantText(t, c.run(exitOK, "group", "seek", "orders", "g", "--to", "1"), "shard 0: moved to 1\n")
	wantText(t, c.run(exitOK, "group", "seek", "orders", "g", "--to", "latest", "--if-new"), "shard 0: left at 1\n")
}

func TestRmForgetsAGroupOnAllShards(t *testing.T) {
	b := newBroker(t)
	b.Append("default/wide", 1, testbroker.Region("x"))
	c := newCLI(t).at(b, "")
	c.run(exitNotFound, "group", "rm", "wide", "g", "--yes")
	wantContains(t, c.stderr.String(), `group "g" of default/wide does not exist`)
	c.run(exitOK, "group", "poll", "wide", "g", "--shard", "1", "--ack")
	c.run(exitUsage, "group", "rm", "wide", "g")
	wantContains(t, c.run(exitOK, "group", "rm", "wide", "g", "--yes"), `"group":"g","status":"removed","shards":`)
	wantText(t, c.run(exitOK, "group", "poll", "wide", "g"), "x\n")
}

func TestBrokerWithoutGroupsIsARefusal(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"default/orders": 1}})
	c := newCLI(t).at(b, "")
	for _, args := range [][]string{{"poll"}, {"info"}, {"work", "--exec", "true"}} {
		c.run(exitRefused, append([]string{"group", args[0], "orders", "g"}, args[1:]...)...)
	}
	wantContains(t, c.stderr.String(), "consumer groups")
}

func TestMistakesAboutGroupsAreToldBeforeAnythingIsAsked(t *testing.T) {
	c := newCLI(t) // there is no broker
	for _, m := range []struct {
		args []string
		want string
	}{
		{[]string{"poll", "orders"}, "felixctl group poll takes STREAM GROUP; it was given"},
		{[]string{"poll", "s", "g", "--count", "0"}, "--count is 0; use 1 to 1000"},
		{[]string{"poll", "s", "g", "--wait", "-1s"}, "--wait and --visibility take a positive time"},
		{[]string{"poll", "s", "g", "--reclaim"}, "--reclaim needs --member"},
		{[]string{"poll", "s", "g", "--shard", "x"}, `--shard is "x"`},
		{[]string{"ack", "s", "g"}, "felixctl group ack takes STREAM GROUP OFFSET"},
		{[]string{"ack", "s", "g", "x"}, `"x" is no offset; use a number, or SHARD/OFFSET`},
		{[]string{"ack", "s", "g", "1/2/3"}, `"1/2/3" is no offset`},
		{[]string{"ack", "s", "g", "1/2", "--shard", "2"}, "1/2 is given with --shard 2"},
		{[]string{"nack", "s", "g", "1", "--delay", "-1s"}, "--delay is -1s"},
		{[]string{"nack", "s", "g", "1", "--dead-letter", "--attempts", "1"}, "--dead-letter is given with --delay or --attempts"},
		{[]string{"work", "s", "g"}, "no command: give --exec"},
		{[]string{"work", "s", "g", "--exec", "x", "--concurrency", "0"}, "--concurrency is 0; use 1 to"},
		{[]string{"work", "s", "g", "--exec", "x", "--visibility", "1ms"}, "--visibility is 1ms"},
		{[]string{"work", "s", "g", "--exec", "x", "--timeout", "-1s"}, "--timeout, --retry-delay and --idle"},
		{[]string{"work", "s", "g", "--exec", "x", "--stop-timeout", "0s"}, "--stop-timeout is 0s"},
		{[]string{"ls"}, "felixctl group ls takes STREAM; it was given none"},
		{[]string{}, "felixctl group needs one of its commands: ack, dead-letters, discard, info, lag, ls, "},
		{[]string{}, "see felixctl group --help"},
		{[]string{"seek", "s", "g", "--to", "soon"}, `--to is "soon"; use latest`},
	} {
		before := len(c.stderr.String())
		c.run(exitUsage, append([]string{"group"}, m.args...)...)
		wantContains(t, c.stderr.String()[before:], m.want)
	}
}

func TestHelpOfGroupSaysWhoTellsTheNames(t *testing.T) {
	wantContains(t, newCLI(t).run(exitOK, "group", "--help"), "ls asks the control\nplane for the names", "ls ", "work ", "dead-letters ", "redrive ")
}

func TestStreamsOfGroupCommandsAreCompleted(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, newControlPlane(t, b).URL)
	for _, name := range []string{"s1", "s2"} {
		c.run(exitOK, "stream", "create", name, "--durable")
	}
	for _, command := range []string{"work", "poll", "ack", "nack", "info", "lag", "dead-letters", "redrive", "discard", "seek", "rm"} {
		wantContains(t, c.run(exitOK, "__complete", "group", command, ""), "s1\ns2\n")
		if out := c.run(exitOK, "__complete", "group", command, "s1", ""); strings.Contains(out, "s2") {
			t.Errorf("%s: a group is completed with %q", command, out)
		}
		if command != "work" {
			wantContains(t, c.run(exitOK, "__complete", "group", command, "s1", "g", "--shard", ""), "all\n")
		}
	}
	wantContains(t, c.run(exitOK, "__complete", "bench", "queue", ""), "s1\ns2\n")
	wantContains(t, c.run(exitOK, "__complete", "group", "seek", "s1", "g", "--to", ""), "latest\nearliest\n")
}

func TestErrorsOfGroupsHaveTheirExitCodes(t *testing.T) {
	if code := exitCode(&client.StaleClaimError{Err: &client.BrokerError{}}); code != exitRefused {
		t.Errorf("a claim that is gone: exit code %d", code)
	}
	if code := exitCode(fmt.Errorf("stop: %w", context.DeadlineExceeded)); code == exitOK {
		t.Error("work that was not settled in time is a success")
	}
}
