package sleepy

import (
	"testing"
	clock "time"
)

type bed struct{}

func (bed) Sleep() {}

func TestSleepsByAValue(t *testing.T) {
	wait := clock.Sleep // want sleeps: a test sleeps
	wait(1)
	var time bed
	time.Sleep()
}
