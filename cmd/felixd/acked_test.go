package main

import (
	"testing"
	"time"

	"github.com/felixd/felixd/client"
)

// Of two claims that lapse the record that was acked does not come again, and the other one does.
//
// mission 247
func TestAnAckedRecordIsNotHandedOutAgainWhenItsClaimWouldLapse(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	c := r.connect(t)
	if _, err := c.PublishBatch(t.Context(), devNamespace, "kept", [][]byte{[]byte("acked"), []byte("open")}); err != nil {
		t.Fatal(err)
	}
	poll := func(o client.GroupPollOptions) []client.Message {
		t.Helper()
		list, err := c.GroupPoll(t.Context(), devNamespace, "kept", 0, "workers", o)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if list := poll(client.GroupPollOptions{Max: 2, Visibility: 300 * time.Millisecond}); len(list) != 2 || string(list[0].Payload) != "acked" {
		t.Fatalf("polled %+v", list)
	}
	if err := c.GroupAck(t.Context(), devNamespace, "kept", 0, "workers", 0); err != nil {
		t.Fatal(err)
	}
	list := poll(client.GroupPollOptions{Max: 2, Wait: patience})
	if len(list) != 1 || list[0].Offset != 1 || list[0].Attempts != 2 {
		t.Errorf("polled again: %+v", list)
	}
	stopped(t, r, c)
}
