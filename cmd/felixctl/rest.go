package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/felixd/felixd/transport"
)

const (
	// apiTimeout is how long one call of the control plane may take; it answers within 30 s or not at all.
	apiTimeout = 35 * time.Second
	// apiBodyMax bounds an answer: the largest page of the largest listing stays under it.
	apiBodyMax = 32 << 20
)

// api is the control plane as one tenant sees it.
type api struct {
	base      string // without a slash at the end
	token     string
	tenant    string
	namespace string
	http      *http.Client
}

// apiError is an answer other than success.
type apiError struct {
	Op      string
	Status  int
	Code    string // stable name of the reason; may be empty
	Message string
}

func (e *apiError) Error() string {
	text := e.Message
	if text == "" {
		text = http.StatusText(e.Status)
	}
	if e.Code != "" {
		text = e.Code + ": " + text
	}
	return fmt.Sprintf("%s: %s (HTTP %d)", e.Op, text, e.Status)
}

// api reads the settings and makes a client of the control plane. Nothing is sent yet.
func (a *app) api() (*api, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	switch {
	case s.controlPlane == "":
		return nil, s.missing("the address of the control plane", "controlplane-url", envControlPlane)
	case s.tenant == "":
		return nil, s.missing("the tenant", "tenant", envTenant)
	case s.controlPlaneToken == "":
		return nil, s.missing("a token for the control plane", "controlplane-token", envControlPlaneToken)
	case !strings.HasPrefix(s.controlPlane, "https://"):
		return nil, usagef("the control plane is at %q; only https:// is spoken, since a token travels", s.controlPlane)
	}
	var authorities []byte
	if s.controlPlaneCA != "" {
		if authorities, err = os.ReadFile(s.controlPlaneCA); err != nil {
			return nil, usagef("read CA file: %v", err)
		}
	}
	tlsConfig, err := transport.ClientTLS(transport.ClientTLSOptions{CAPEM: authorities})
	if err != nil {
		return nil, err
	}
	return &api{
		base: s.controlPlane, token: s.controlPlaneToken, tenant: s.tenant, namespace: s.namespace, http: httpClient(tlsConfig),
	}, nil
}

// httpClient never follows a redirect: the token is for the address that was named.
func httpClient(c *tls.Config) *http.Client {
	return &http.Client{
		Timeout:       apiTimeout,
		Transport:     &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (c *api) close() { c.http.CloseIdleConnections() }

// path is the path of a collection of the namespace, or of one of its members.
func (c *api) path(collection string, name ...string) string {
	p := fmt.Sprintf("/v1/tenants/%s/namespaces/%s/%s", url.PathEscape(c.tenant), url.PathEscape(c.namespace), collection)
	for _, n := range name {
		p += "/" + url.PathEscape(n)
	}
	return p
}

// call sends a request and returns status and body of a success. A nil body sends none. The error is an *apiError for any
// other answer.
func (c *api) call(ctx context.Context, op, method, path string, body any) (int, []byte, error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return 0, nil, fmt.Errorf("%s: %w", op, err)
		}
		content = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return 0, nil, usagef("%s: %v", op, err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: reach the control plane: %w", op, err)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, apiBodyMax))
	if closed := answer.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%s: read the answer of the control plane: %w", op, err)
	}
	if answer.StatusCode/100 != 2 {
		return 0, nil, refused(op, answer.StatusCode, data)
	}
	return answer.StatusCode, data, nil
}

// refused reads an error body. One that is no JSON, from something in between, is kept out of the message.
func refused(op string, status int, data []byte) error {
	var body struct{ Code, Message string }
	e := &apiError{Op: op, Status: status}
	if json.Unmarshal(data, &body) == nil {
		e.Code, e.Message = body.Code, body.Message
	}
	return e
}

// list reads all pages of a listing.
func (c *api) list(ctx context.Context, op, path string) ([]json.RawMessage, error) {
	all := []json.RawMessage{}
	for cursor := ""; ; {
		query := ""
		if cursor != "" {
			query = "?cursor=" + url.QueryEscape(cursor)
		}
		_, data, err := c.call(ctx, op, http.MethodGet, path+query, nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Items      []json.RawMessage `json:"items"`
			NextCursor string            `json:"next_cursor"`
		}
		if err := json.Unmarshal(data, &page); err != nil {
			return nil, fmt.Errorf("%s: the control plane sent no listing: %w", op, err)
		}
		all = append(all, page.Items...)
		switch page.NextCursor {
		case "":
			return all, nil
		case cursor:
			return nil, fmt.Errorf("%s: the control plane repeats the page at cursor %q", op, cursor)
		}
		cursor = page.NextCursor
	}
}
