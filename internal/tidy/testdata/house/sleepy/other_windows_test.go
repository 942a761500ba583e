package sleepy

import (
	"testing"
	"time"
)

func TestSleepsOnAnotherSystem(t *testing.T) {
	time.Sleep(1) // want sleeps: a test sleeps
}
