package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// faultActor is what the door says of one actor. Times are in milliseconds.
type faultActor struct {
	Actor     string `json:"actor"`
	Kind      string `json:"kind"`
	Tenant    string `json:"tenant"`
	Items     int    `json:"items"`
	Bytes     int    `json:"bytes"`
	PausedMS  int64  `json:"paused_ms"`
	SlowMS    int64  `json:"slow_ms"`
	SlowForMS int64  `json:"slow_for_ms"`
	Stopping  bool   `json:"stopping"`
}

// faultListCommand shows every actor.
func (a *app) faultListCommand(socket *string) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the actors, what waits in their mailboxes and what was done to them", Args: cobra.NoArgs,
		Example: "  felixctl fault ls",
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			return a.withFaultDoor(cmd.Context(), *socket, func(d *faultDoor) error {
				items, err := d.list()
				if err != nil {
					return err
				}
				if a.asJSON() {
					return writeJSON(a.sys.stdout, map[string]any{"items": items})
				}
				rows := make([][]string, len(items))
				for i, item := range items {
					var x faultActor
					if err := json.Unmarshal(item, &x); err != nil {
						return fmt.Errorf("fault ls: the fault door sent an actor that does not decode: %w", err)
					}
					rows[i] = []string{escape([]byte(x.Actor)), x.Kind, escape([]byte(x.Tenant)), strconv.Itoa(x.Items), strconv.Itoa(x.Bytes), x.state()}
				}
				return a.table([]string{"ACTOR", "KIND", "TENANT", "QUEUED", "BYTES", "STATE"}, rows)
			})
		}),
	}
}

// list reads all pages. Actors come and go meanwhile.
func (d *faultDoor) list() ([]json.RawMessage, error) {
	all := []json.RawMessage{}
	for after := ""; ; {
		var page struct {
			Actors []json.RawMessage `json:"actors"`
			Next   string            `json:"next"`
		}
		if err := d.ask(faultRequest{Do: "ls", After: after}, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Actors...)
		switch {
		case page.Next == "":
			return all, nil
		case page.Next <= after:
			return nil, fmt.Errorf("fault ls: the fault door goes back from %q to %q", after, page.Next)
		}
		after = page.Next
	}
}

// state says what was done to an actor and how long that goes on.
func (x faultActor) state() string {
	var parts []string
	if x.PausedMS > 0 {
		parts = append(parts, fmt.Sprintf("paused, %s left", ofMillis(x.PausedMS)))
	}
	if x.SlowMS > 0 {
		parts = append(parts, fmt.Sprintf("slowed by %s a turn, %s left", ofMillis(x.SlowMS), ofMillis(x.SlowForMS)))
	}
	if x.Stopping {
		parts = append(parts, "stopping")
	}
	return strings.Join(parts, "; ")
}

func ofMillis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// completeActors completes the argument with the paths of live actors. Without a door there is nothing to complete.
func (a *app) completeActors(socket *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (paths []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		_ = a.withFaultDoor(ctx, *socket, func(d *faultDoor) error {
			items, err := d.list()
			for _, item := range items {
				var x faultActor
				if json.Unmarshal(item, &x) == nil {
					paths = append(paths, x.Actor)
				}
			}
			return err
		})
		return paths, cobra.ShellCompDirectiveNoFileComp
	}
}
