package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/controlplane/auth"
)

// mint makes a token for clients with the key of a daemon.
func (r *running) mint(t *testing.T, permissions ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, tokenKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	key, err := auth.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	token, err := auth.NewSigner(devTenant, key, nil).Mint(auth.Claims{
		Tenant: devTenant, Subject: "p:narrow", Audience: auth.AudienceBroker, Permissions: permissions, TTL: time.Hour, Now: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Each action is tried on an object that a token names and on another one, with tokens that have one permission each: the broker does what the
// token allows, and refuses all else as forbidden.
//
// mission 382
func TestATokenIsGoodForItsActionsOnItsObjectsAndForNothingElse(t *testing.T) {
	r := start(t, t.TempDir())
	defer r.stop(t)
	for _, name := range []string{"kept", "other"} {
		r.must(t, "POST", devStreamsPath, `{"stream":"`+name+`","durable":true}`)
	}
	r.must(t, "POST", "/v1/tenants/"+devTenant+"/namespaces/"+devNamespace+"/caches", `{"cache":"other"}`)
	calls := map[string]func(c *client.Client, object string) error{
		"stream.publish": func(c *client.Client, object string) error {
			_, err := c.Publish(t.Context(), devNamespace, object, []byte("x"))
			return err
		},
		"stream.subscribe": func(c *client.Client, object string) error {
			_, err := c.Read(t.Context(), devNamespace, object, client.ReadOptions{})
			sub, subErr := c.Subscribe(t.Context(), devNamespace, object, client.SubscribeOptions{})
			if subErr == nil {
				sub.Close()
			}
			if errors.Is(err, client.ErrForbidden) != errors.Is(subErr, client.ErrForbidden) {
				t.Errorf("a read of %s: %v, a subscribe: %v", object, err, subErr)
			}
			return errors.Join(err, subErr)
		},
		"cache.read": func(c *client.Client, object string) error {
			_, _, err := c.CacheGet(t.Context(), devNamespace, object, "k")
			return err
		},
		"cache.write": func(c *client.Client, object string) error {
			return c.CachePut(t.Context(), devNamespace, object, "k", []byte("v"), 0)
		},
		"group.consume": func(c *client.Client, object string) error {
			_, err := c.GroupPoll(t.Context(), devNamespace, object, 0, "workers", client.GroupPollOptions{})
			return err
		},
		"group.manage": func(c *client.Client, object string) error {
			_, err := c.GroupDelete(t.Context(), devNamespace, object, 0, "workers")
			return err
		},
	}
	named := map[string]string{"cache.read": "users", "cache.write": "users"}
	of := func(action string) string {
		if object, ok := named[action]; ok {
			return object
		}
		return "kept"
	}
	const streams, caches = devTenant + "/" + devNamespace + "/kept", devTenant + "/" + devNamespace + "/users"
	for permission, allowed := range map[string][]string{ // what it allows on the object it names
		"stream.publish:stream:" + streams:                       {"stream.publish"},
		"stream.subscribe:stream:" + streams:                     {"stream.subscribe", "group.consume"}, // who may read a stream may work on it
		"cache.read:cache:" + caches:                             {"cache.read"},
		"cache.write:cache:" + caches:                            {"cache.write"},
		"group.consume:group:" + streams + "/workers":            {"group.consume"},
		"group.manage:group:" + streams + "/workers":             {"group.manage"},
		"group.consume:group:" + streams + "/others":             nil,
		"stream.publish:stream:" + devTenant + "/elsewhere/kept": nil,
	} {
		o := client.Options{Addrs: []string{r.dev.ClientAddr}, TenantID: devTenant, Token: r.mint(t, permission), CAFile: r.dev.CAFile}
		c, err := client.Connect(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for action, call := range calls {
			want := slices.Contains(allowed, action)
			switch err := call(c, of(action)); {
			case want && err != nil:
				t.Errorf("%s: %s on %s: %v", permission, action, of(action), err)
			case !want && !errors.Is(err, client.ErrForbidden):
				t.Errorf("%s: %s on %s: %v, want that it is forbidden", permission, action, of(action), err)
			}
			if err := call(c, "other"); !errors.Is(err, client.ErrForbidden) {
				t.Errorf("%s: %s on another object: %v, want that it is forbidden", permission, action, err)
			}
		}
		closeClient(c)
	}
}
