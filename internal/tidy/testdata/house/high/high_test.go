package high

import (
	"testing"

	"example.com/house/rooms"
	"example.com/third"
)

func TestHigh(t *testing.T) {
	var _ rooms.Message
	t.Log(third.Answer)
}
