package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// alsoCalled are the names under which people who come from other tools look for a command.
var alsoCalled = map[string][]string{
	"rm": {"delete", "del", "remove"}, "ls": {"list"}, "info": {"show", "describe", "get"}, "create": {"new", "add"}, "pub": {"publish", "send", "produce"},
	"sub": {"subscribe", "consume", "tail"}, "get": {"show"}, "put": {"set"}, "watch": {"subscribe"}, "poll": {"claim", "receive"}, "ack": {"settle"},
}

// tellArguments makes c and what is below it say by name which arguments they take, and which command may have been meant.
func tellArguments(c *cobra.Command) {
	if c.Args != nil {
		c.Args = told(c.Args)
	}
	c.SuggestFor, c.SuggestionsMinimumDistance = append(c.SuggestFor, alsoCalled[c.Name()]...), 2
	for _, below := range c.Commands() {
		tellArguments(below)
	}
}

// told is check with an error that names what is taken.
func told(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case check(cmd, args) == nil:
			return nil
		case cmd.HasSubCommands():
			meant := ""
			if near := slices.Compact(cmd.SuggestionsFor(args[0])); len(near) > 0 {
				meant = "; did you mean " + strings.Join(near, " or ") + "?"
			}
			return fmt.Errorf("%s has no command %q%s", cmd.CommandPath(), args[0], meant)
		}
		_, takes, _ := strings.Cut(cmd.Use, " ")
		if takes == "" {
			takes = "no arguments"
		}
		given := "it was given none"
		if len(args) > 0 {
			given = fmt.Sprintf("it was given %q", args)
		}
		return fmt.Errorf("%s takes %s; %s", cmd.CommandPath(), takes, given)
	}
}
