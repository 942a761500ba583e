package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"
)

// completionPatience is how long a shell may wait for names when someone presses tab.
const completionPatience = time.Second

// completeNames completes the first argument with the names of the namespace's streams or caches. When the control plane
// is not there, there is nothing to complete, which is no error.
func (a *app) completeNames(collection string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := a.api()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.close()
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		items, err := c.list(ctx, "complete", c.path(collection))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, item := range items {
			var record struct{ Stream, Cache string }
			if json.Unmarshal(item, &record) == nil {
				names = append(names, record.Stream+record.Cache) // a record has one of them
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// fixedValues completes a flag with words.
func fixedValues(cmd *cobra.Command, flag string, words ...string) {
	completeFlag(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completeFlag says what completes a flag.
func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic("felixctl: " + err.Error()) // the flag was registered a line above, or the command is built wrong
	}
}
