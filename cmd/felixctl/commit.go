package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/wire/id"
)

func (a *app) commitCommand() *cobra.Command {
	var entity, event string
	var puts, deletes []string
	var expected uint64
	cmd := &cobra.Command{
		Use:   "commit STREAM",
		Short: "Append an event and change state, together",
		Long: `Append an event to a durable stream and change the state of an entity: both or neither. The entity's key chooses the
shard. Subscribers get the event like any other record; state get reads what was put.

With --if-offset nothing is written unless the event gets that offset; exit code 4 then, and the error names the next one.`,
		Example: `  felixctl commit accounts --entity alice --event opened --put balance=10
  felixctl commit accounts --entity alice --event closed --delete balance --if-offset 1`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			if !flags.Changed("entity") || !flags.Changed("event") {
				return usagef("give an --entity and an --event")
			}
			changes, err := changesOf(puts, deletes)
			if err != nil {
				return err
			}
			ctx, stream := cmd.Context(), args[0]
			return a.withBroker(ctx, func(b broker) (err error) {
				stop := a.progress(func() string { return "committing to " + b.namespace + "/" + stream })
				var at id.Offset
				if flags.Changed("if-offset") {
					at, err = b.CommitIf(ctx, b.namespace, stream, id.Offset(expected), []byte(entity), []byte(event), changes...)
				} else {
					at, err = b.Commit(ctx, b.namespace, stream, []byte(entity), []byte(event), changes...)
				}
				stop()
				if err != nil {
					return err
				}
				return a.result(map[string]any{"namespace": b.namespace, "stream": stream, "entity": entity, "offset": uint64(at)},
					"committed to %s/%s at offset %s", b.namespace, stream, at)
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&entity, "entity", "", "key of the entity whose state changes")
	flags.StringVar(&event, "event", "", "payload of the event")
	flags.StringArrayVar(&puts, "put", nil, "KEY=VALUE to set; may be given several times")
	flags.StringArrayVar(&deletes, "delete", nil, "KEY to remove; may be given several times")
	flags.Uint64Var(&expected, "if-offset", 0, "only if the event gets this offset")
	return cmd
}

func changesOf(puts, deletes []string) ([]client.Change, error) {
	var changes []client.Change
	for _, put := range puts {
		key, value, ok := strings.Cut(put, "=")
		if !ok {
			return nil, usagef("--put is %q; give KEY=VALUE", put)
		}
		changes = append(changes, client.Put(key, []byte(value)))
	}
	for _, key := range deletes {
		changes = append(changes, client.Delete(key))
	}
	return changes, nil
}

func (a *app) stateCommand() *cobra.Command {
	return group("state", "Read the state that commits left", a.stateGetCommand())
}

// stateValue is a value of state in JSON.
type stateValue struct {
	Namespace   string  `json:"namespace"`
	Stream      string  `json:"stream"`
	Entity      string  `json:"entity"`
	Key         string  `json:"key"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 *string `json:"value_base64,omitempty"`
	Version     uint64  `json:"version"`         // offset of the commit that wrote it
	AsOf        *uint64 `json:"as_of,omitempty"` // offset of the last commit that is reflected
}

func (a *app) stateGetCommand() *cobra.Command {
	var entity string
	cmd := &cobra.Command{
		Use:   "get STREAM KEY",
		Short: "Print a value of an entity's state",
		Long: `Print a value: escaped on a terminal, byte for byte and without a line feed elsewhere, as an object with --json.
A key that is not there ends with exit code 5.`,
		Example:           `  felixctl state get accounts balance --entity alice`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("entity") {
				return usagef("give an --entity")
			}
			return a.withBroker(cmd.Context(), func(b broker) error {
				stop := a.progress(func() string { return "reading state of " + b.namespace + "/" + args[0] })
				v, err := b.StateGet(cmd.Context(), b.namespace, args[0], []byte(entity), args[1])
				stop()
				if err != nil {
					return err
				}
				return a.printState(v, stateValue{Namespace: b.namespace, Stream: args[0], Entity: entity, Key: args[1]})
			})
		}),
	}
	cmd.Flags().StringVar(&entity, "entity", "", "key of the entity")
	return cmd
}

func (a *app) printState(v client.State, out stateValue) error {
	var err error
	switch {
	case !v.Found:
		return &absentError{"key " + out.Key + " of entity " + out.Entity + " in the state of " + out.Namespace + "/" + out.Stream}
	case a.flags.json:
		out.Value, out.ValueBase64 = blob(v.Value).members()
		out.Version = uint64(v.Version)
		if v.HasAsOf {
			asOf := uint64(v.AsOf)
			out.AsOf = &asOf
		}
		return writeJSON(a.sys.stdout, out)
	case a.sys.stdoutTerminal:
		_, err = io.WriteString(a.sys.stdout, escape(v.Value)+"\n")
	default:
		_, err = a.sys.stdout.Write(v.Value)
	}
	return err
}
