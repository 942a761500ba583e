package main

import (
	"bufio"
	"fmt"
	"strings"
)

// confirm asks before something is destroyed. Where nobody can answer, --yes must have been given.
func (a *app) confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	if !a.sys.stdinTerminal {
		return usagef("%s needs --yes when nobody can be asked", what)
	}
	fmt.Fprintf(a.sys.stderr, "%s? [y/N] ", what)
	answer, err := bufio.NewReader(a.sys.stdin).ReadString('\n')
	if err != nil && answer == "" {
		return usagef("%s was not confirmed", what)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return usagef("%s was not confirmed", what)
}
