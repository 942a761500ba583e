package clientguide

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
)

func useCache(ctx context.Context, c *client.Client) error {
	if err := c.CachePut(ctx, "default", "users", "alice", []byte("42"), time.Minute); err != nil {
		return err
	}
	value, found, err := c.CacheGet(ctx, "default", "users", "alice")
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("alice expired already")
	}
	removed, found, err := c.CacheDelete(ctx, "default", "users", "alice")
	if err != nil {
		return err
	}
	fmt.Printf("read %s, removed %s: %v\n", value, removed, found)
	return nil
}

func whatNow(err error) string {
	var refused *client.BrokerError
	var gone *client.GaveUpError
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, client.ErrOutcomeUnknown):
		return "it may have happened: repeat it only if it may happen twice"
	case errors.As(err, &gone):
		return fmt.Sprintf("nothing happened in %d tries; later perhaps", gone.Tries)
	case errors.Is(err, client.ErrOverloaded) && errors.As(err, &refused):
		return fmt.Sprintf("nothing happened; repeat it after %v", refused.RetryAfter)
	case errors.Is(err, client.ErrForbidden), errors.Is(err, client.ErrUnauthenticated):
		return "another token is needed"
	case client.Retryable(err):
		return "nothing happened; repeat it"
	}
	return "do not repeat it"
}

func TestCaching(t *testing.T) {
	s := begin(t)
	if err := useCache(s.ctx, s.client()); err != nil {
		t.Error(err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	s := begin(t)
	c := s.client()
	wrong := s.options
	wrong.Token = "another"
	_, refused := client.Connect(s.ctx, wrong)
	_, invalid := c.Publish(s.ctx, "default", "", nil)
	past, cancel := context.WithDeadline(s.ctx, time.Now().Add(-time.Second))
	defer cancel()
	var pending *client.PendingPublish
	var unknown error
	for unknown == nil { // the answer may be there already when it is waited for
		var err error
		if pending, err = c.PublishAsync(s.ctx, "default", "orders", make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		_, unknown = pending.Wait(past)
	}
	for _, x := range []struct {
		err  error
		want string
	}{
		{nil, "done"},
		{refused, "another token is needed"},
		{invalid, "do not repeat it"},
		{unknown, "it may have happened: repeat it only if it may happen twice"},
		{&client.GaveUpError{Tries: 5, Err: &client.BrokerError{}}, "nothing happened in 5 tries; later perhaps"},
		{&client.NotLeaderError{}, "nothing happened; repeat it"},
	} {
		if got := whatNow(x.err); got != x.want {
			t.Errorf("%v: %s, want %s", x.err, got, x.want)
		}
	}
	if _, err := pending.Wait(s.ctx); err != nil {
		t.Error(err)
	}
}
