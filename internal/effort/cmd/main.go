// Command cmd prints the size of one test campaign, or the table of all of them, for scripts:
//
//	go run ./internal/effort/cmd conformance_rounds
//	go run ./internal/effort/cmd
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/felixd/felixd/internal/effort"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(args []string, out io.Writer) error {
	switch len(args) {
	case 0:
		return table(out)
	case 1:
		n, err := effort.Lookup(args[0])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, n)
		return err
	}
	return errors.New("effort: want one campaign's name, or none for the whole table")
}

func table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "campaign\tshort\tfull\twhat")
	for _, e := range effort.Table() {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", e.Name, e.Short, e.Full, e.What)
	}
	return w.Flush()
}
