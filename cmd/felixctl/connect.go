package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/felixd/felixd/client"
)

// broker is a connected client with the settings it came from.
type broker struct {
	*client.Client
	namespace string
}

// withBroker connects, runs work and closes. What the client could not flush counts as failure of the work.
func (a *app) withBroker(ctx context.Context, work func(b broker) error, changes ...func(*client.Options)) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	switch {
	case len(s.addrs) == 0:
		return s.missing("the address of a broker", "addr", envAddr)
	case s.tenant == "":
		return s.missing("the tenant", "tenant", envTenant)
	case s.token == "":
		return s.missing("a token for the broker", "token", envToken)
	}
	stop := a.progress(func() string { return "connecting to " + strings.Join(s.addrs, ", ") })
	o := client.Options{
		Addrs: s.addrs, TenantID: s.tenant, Token: s.token, CAFile: s.caFile, ServerName: s.serverName, OfferALPN: a.flags.alpn,
	}
	for _, change := range changes {
		change(&o)
	}
	c, err := client.Connect(ctx, o)
	stop()
	if err != nil {
		return err
	}
	err = work(broker{Client: c, namespace: s.namespace})
	return errors.Join(err, closeBroker(ctx, c))
}

// closeBroker flushes and closes, also when the command was interrupted: what was sent is still to arrive.
func closeBroker(ctx context.Context, c *client.Client) error {
	if err := c.Close(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}
