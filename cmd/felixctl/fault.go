package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// faultTimeMax is the longest pause, slowdown and delay a door accepts.
const faultTimeMax = 10 * time.Minute

// faultDone is what the door says when something was done.
type faultDone struct {
	Do    string `json:"do"`
	Actor string `json:"actor"`
}

// faultCommand breaks actors of a felixd on purpose.
func (a *app) faultCommand() *cobra.Command {
	var socket string
	c := group("fault", "Crash, pause or slow actors of a felixd that runs with --fault-door",
		a.faultListCommand(&socket), a.faultCrashCommand(&socket), a.faultPauseCommand(&socket), a.faultSlowCommand(&socket), a.faultHealCommand(&socket))
	c.PersistentFlags().StringVar(&socket, "fault-socket", "", "the fault door; default fault.sock beside the context file ["+envFaultSocket+"]")
	return c
}

func (a *app) faultCrashCommand(socket *string) *cobra.Command {
	return a.faultAction(socket, "crash ACTOR", "Make an actor's next turn panic, at once", "crash shards/3", func(*cobra.Command) func() (faultRequest, string, error) {
		return func() (faultRequest, string, error) { return faultRequest{Do: "crash"}, "crashed %s", nil }
	})
}

func (a *app) faultHealCommand(socket *string) *cobra.Command {
	return a.faultAction(socket, "heal ACTOR", "End a pause and a slowdown", "heal shards/3", func(*cobra.Command) func() (faultRequest, string, error) {
		return func() (faultRequest, string, error) { return faultRequest{Do: "heal"}, "healed %s", nil }
	})
}

func (a *app) faultPauseCommand(socket *string) *cobra.Command {
	return a.faultAction(socket, "pause ACTOR --for TIME", "Let an actor do nothing for a while; its mailbox fills", "pause shards/3 --for 5s", func(c *cobra.Command) func() (faultRequest, string, error) {
		lasts := durationFlag(c, "for", "how long, like 5s")
		return func() (faultRequest, string, error) {
			ms, err := faultMillis("for", *lasts)
			return faultRequest{Do: "pause", MS: ms}, fmt.Sprintf("paused %%s for %s", *lasts), err
		}
	})
}

func (a *app) faultSlowCommand(socket *string) *cobra.Command {
	return a.faultAction(socket, "slow ACTOR --by TIME --for TIME", "Let each turn of an actor wait before it begins", "slow shards/3 --by 10ms --for 30s", func(c *cobra.Command) func() (faultRequest, string, error) {
		by, lasts := durationFlag(c, "by", "what a turn waits, like 10ms"), durationFlag(c, "for", "how long, like 30s")
		return func() (faultRequest, string, error) {
			ms, err := faultMillis("by", *by)
			if err != nil {
				return faultRequest{}, "", err
			}
			forMS, err := faultMillis("for", *lasts)
			return faultRequest{Do: "slow", MS: ms, ForMS: forMS}, fmt.Sprintf("slowed %%s by %s a turn for %s", *by, *lasts), err
		}
	})
}

// faultAction is a command that does one thing to one actor. prepare adds the flags and returns what reads them: the request, and the
// sentence for people, with a place for the actor.
func (a *app) faultAction(socket *string, use, short, example string, prepare func(c *cobra.Command) func() (faultRequest, string, error)) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Example: "  felixctl fault " + example, Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeActors(socket)}
	read := prepare(c)
	c.RunE = does(func(cmd *cobra.Command, args []string) error {
		request, sentence, err := read()
		if err != nil {
			return err
		}
		request.Actor = args[0]
		return a.withFaultDoor(cmd.Context(), *socket, func(d *faultDoor) error {
			var done faultDone
			if err := d.ask(request, &done); err != nil {
				return err
			}
			return a.result(done, sentence, escape([]byte(args[0])))
		})
	})
	return c
}

// durationFlag is a flag that must be given.
func durationFlag(c *cobra.Command, name, usage string) *time.Duration {
	d := c.Flags().Duration(name, 0, usage)
	if err := c.MarkFlagRequired(name); err != nil {
		panic("felixctl: " + err.Error()) // the flag was made a line above
	}
	return d
}

// faultMillis is a time as the door takes it.
func faultMillis(flag string, d time.Duration) (int64, error) {
	if d < time.Millisecond || d > faultTimeMax || d%time.Millisecond != 0 {
		return 0, usagef("--%s is %s; use 1ms to %s, in whole milliseconds", flag, d, faultTimeMax)
	}
	return d.Milliseconds(), nil
}
