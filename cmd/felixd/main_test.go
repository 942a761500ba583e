package main

import (
	"os"
	"testing"
)

// daemonVariable makes this test program a felixd, for tests that need one in a process of its own.
const daemonVariable = "FELIXD_TEST_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(daemonVariable) != "" {
		main() // it exits
	}
	hostedMax = patience // a disk may take a while to make a log
	os.Exit(m.Run())
}
