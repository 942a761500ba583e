package sleepy

import (
	"testing"
	. "time"
)

func TestSleepsByADot(t *testing.T) {
	Sleep(1) // want sleeps: a test sleeps
}
