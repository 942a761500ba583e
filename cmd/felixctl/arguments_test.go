package main

import "testing"

func TestAMistakeInTheArgumentsIsToldByTheirNames(t *testing.T) {
	c := newCLI(t)
	for _, m := range []struct {
		args []string
		want string
	}{
		{[]string{"group", "seek", "jobs", "w", "earliest"}, `felixctl group seek takes STREAM GROUP --to POSITION; it was given ["jobs" "w" "earliest"]`},
		{[]string{"cache", "get", "users"}, `felixctl cache get takes CACHE KEY; it was given ["users"]`},
		{[]string{"cache", "get"}, "felixctl cache get takes CACHE KEY; it was given none"},
		{[]string{"version", "x"}, `felixctl version takes no arguments; it was given ["x"]`},
		{[]string{"cache", "delete", "users", "bob"}, `felixctl cache has no command "delete"; did you mean rm?`},
		{[]string{"cache", "wach", "users"}, `felixctl cache has no command "wach"; did you mean watch?`},
		{[]string{"group", "list"}, `felixctl group has no command "list"; did you mean ls?`},
		{[]string{"publish", "orders"}, `felixctl has no command "publish"; did you mean pub?`},
		{[]string{"quux"}, "felixctl has no command \"quux\"\nsee felixctl --help"},
	} {
		before := len(c.stderr.String())
		c.run(exitUsage, m.args...)
		wantContains(t, c.stderr.String()[before:], m.want)
	}
}
