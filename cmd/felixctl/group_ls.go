package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// groupLsCommand lists the groups of a stream.
func (a *app) groupLsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls STREAM", Short: "List the groups of a stream", Example: "  felixctl group ls orders", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			c, err := a.api()
			if err != nil {
				return err
			}
			defer c.close()
			op := fmt.Sprintf("list groups of %s/%s", c.namespace, args[0])
			items, err := c.list(cmd.Context(), op, c.path("streams", args[0], "groups"))
			if err != nil {
				return err
			}
			if a.asJSON() {
				return writeJSON(a.sys.stdout, map[string]any{"items": items})
			}
			rows := make([][]string, len(items))
			for i, item := range items {
				var g struct {
					Group string `json:"group"`
				}
				if err := json.Unmarshal(item, &g); err != nil {
					return fmt.Errorf("%s: the control plane sent a record that does not decode: %w", op, err)
				}
				rows[i] = []string{escape([]byte(g.Group))} // any text is a name
			}
			return a.table([]string{"GROUP"}, rows)
		}),
	}
}
