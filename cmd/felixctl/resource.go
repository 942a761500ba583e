package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

// resource is a kind of thing the control plane keeps per namespace: streams or caches. Its commands are the same.
type resource struct {
	noun, collection string
	head             []string
	row              func(raw json.RawMessage) ([]string, error) // cells under head
	facts            func(raw json.RawMessage) ([][]string, error)
}

// lsCommand lists the names.
func (a *app) lsCommand(r resource) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the " + r.noun + "s of the namespace", Args: cobra.NoArgs,
		Example: "  felixctl " + r.noun + " ls\n  felixctl " + r.noun + " ls --namespace default --json",
		RunE: does(func(cmd *cobra.Command, _ []string) error {
			c, err := a.api()
			if err != nil {
				return err
			}
			defer c.close()
			defer a.progress(func() string { return "listing " + r.noun + "s" })()
			items, err := c.list(cmd.Context(), "list "+r.noun+"s", c.path(r.collection))
			if err != nil {
				return err
			}
			if a.asJSON() {
				return writeJSON(a.sys.stdout, map[string]any{"items": items})
			}
			rows := make([][]string, len(items))
			for i, item := range items {
				if rows[i], err = r.row(item); err != nil {
					return fmt.Errorf("list %ss: the control plane sent a record that does not decode: %w", r.noun, err)
				}
			}
			return a.table(r.head, rows)
		}),
	}
}

// infoCommand shows one.
func (a *app) infoCommand(r resource) *cobra.Command {
	return &cobra.Command{
		Use: "info NAME", Short: "Show one " + r.noun, Example: "  felixctl " + r.noun + " info NAME", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeNames(r.collection),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			c, err := a.api()
			if err != nil {
				return err
			}
			defer c.close()
			defer a.progress(func() string { return "asking for " + r.noun + " " + args[0] })()
			op := fmt.Sprintf("show %s %s/%s", r.noun, c.namespace, args[0])
			_, data, err := c.call(cmd.Context(), op, http.MethodGet, c.path(r.collection, args[0]), nil)
			if err != nil {
				return err
			}
			return a.show(r, op, data)
		}),
	}
}

// show prints one record: as it came, or as facts in lines.
func (a *app) show(r resource, op string, data []byte) error {
	if a.asJSON() {
		if !json.Valid(data) {
			return fmt.Errorf("%s: the control plane sent no JSON", op)
		}
		return writeJSON(a.sys.stdout, json.RawMessage(data))
	}
	facts, err := r.facts(data)
	if err != nil {
		return fmt.Errorf("%s: the control plane sent a record that does not decode: %w", op, err)
	}
	return a.table(facts[0], facts[1:])
}

// create posts a body and says whether it made something.
func (a *app) create(cmd *cobra.Command, r resource, name string, body any) error {
	c, err := a.api()
	if err != nil {
		return err
	}
	defer c.close()
	stop := a.progress(func() string { return "creating " + r.noun + " " + name })
	op := fmt.Sprintf("create %s %s/%s", r.noun, c.namespace, name)
	status, data, err := c.call(cmd.Context(), op, http.MethodPost, c.path(r.collection), body)
	stop()
	if err != nil {
		return err
	}
	if a.asJSON() {
		return a.show(r, op, data)
	}
	if status == http.StatusCreated {
		return a.result(nil, "created %s %s/%s", r.noun, c.namespace, name)
	}
	return a.result(nil, "%s %s/%s exists already, with the same settings", r.noun, c.namespace, name)
}

// remove deletes one after asking.
func (a *app) remove(cmd *cobra.Command, r resource, name string, yes bool) error {
	c, err := a.api()
	if err != nil {
		return err
	}
	defer c.close()
	if err := a.confirm(yes, fmt.Sprintf("remove %s %s/%s with all it holds", r.noun, c.namespace, name)); err != nil {
		return err
	}
	defer a.progress(func() string { return "removing " + r.noun + " " + name })()
	op := fmt.Sprintf("remove %s %s/%s", r.noun, c.namespace, name)
	if _, _, err := c.call(cmd.Context(), op, http.MethodDelete, c.path(r.collection, name), nil); err != nil {
		return err
	}
	return a.result(map[string]string{"namespace": c.namespace, r.noun: name, "status": "removed"}, "removed %s %s/%s", r.noun, c.namespace, name)
}
