package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// renewPatience bounds a fetch while the old token is still good: whoever happens to do it waits no longer.
	renewPatience = 10 * time.Second
	// renewPauseMax bounds how long a failed fetch is not repeated while the old token is still good.
	renewPauseMax = 30 * time.Second
)

// Token is a token and how long it is good.
type Token struct {
	Value   string
	Expires time.Time // zero: it does not expire
}

// TokenSource keeps a token fresh, for Options.TokenSource. The client asks it whenever a stream authenticates; streams that
// are open keep the token they began with. Once two thirds of a token's life are over, and up to a twelfth more so that not
// all clients come at once, one caller fetches the next while the others go on with the old. A fetch that fails is repeated
// after a pause; until the old token expires it stays in use. It has no goroutine: who does not ask, fetches nothing. Safe
// for concurrent use, and by several clients.
type TokenSource struct {
	fetch  func(ctx context.Context) (Token, error)
	now    func() time.Time
	jitter func(ceiling time.Duration) time.Duration

	gate chan struct{} // holds the right to fetch

	mu    sync.Mutex
	token Token
	have  bool
	renew time.Time // when to fetch the next; zero: not while this one is good
}

// NewTokenSource returns a source that gets its tokens from fetch. fetch is called by one goroutine at a time; it must heed
// its context.
func NewTokenSource(fetch func(ctx context.Context) (Token, error)) *TokenSource {
	s := &TokenSource{
		fetch: fetch, now: time.Now, gate: make(chan struct{}, 1),
		jitter: func(ceiling time.Duration) time.Duration { return rand.N(ceiling + 1) },
	}
	s.gate <- struct{}{}
	return s
}

// Token returns a token that is good. It fails with the error of fetch when there is none, or with that of ctx.
func (s *TokenSource) Token(ctx context.Context) (string, error) {
	value, good, due := s.look()
	switch {
	case good && !due:
		return value, nil
	case good:
		return s.refresh(ctx, value), nil
	}
	select {
	case <-s.gate:
	case <-ctx.Done():
		return "", fmt.Errorf("wait for a token: %w", ctx.Err())
	}
	defer func() { s.gate <- struct{}{} }()
	if value, good, _ := s.look(); good { // somebody was faster
		return value, nil
	}
	return s.next(ctx)
}

// Refused takes note that a broker refused a token before its time. The next call of Token fetches another.
func (s *TokenSource) Refused(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token.Value == token {
		s.have = false
	}
}

// look returns the token there is, whether it is good, and whether it is time for the next.
func (s *TokenSource) look() (value string, good, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	good = s.have && (s.token.Expires.IsZero() || now.Before(s.token.Expires))
	return s.token.Value, good, good && !s.renew.IsZero() && !now.Before(s.renew)
}

// refresh returns a new token, or the old one when another caller is at it or the fetch fails.
func (s *TokenSource) refresh(ctx context.Context, old string) string {
	select {
	case <-s.gate:
	default:
		return old
	}
	defer func() { s.gate <- struct{}{} }()
	if value, good, due := s.look(); good && !due {
		return value
	}
	ctx, cancel := context.WithTimeout(ctx, renewPatience)
	defer cancel()
	value, err := s.next(ctx)
	if err != nil {
		s.postpone()
		return old
	}
	return value
}

// next fetches a token and keeps it. The gate is held.
func (s *TokenSource) next(ctx context.Context) (string, error) {
	began := s.now() // its life may count from when it was asked for
	t, err := s.fetch(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("fetch a token: %w", err)
	case t.Value == "":
		return "", errors.New("fetch a token: it is empty")
	case !t.Expires.IsZero() && !t.Expires.After(s.now()):
		return "", fmt.Errorf("fetch a token: it expired at %v", t.Expires)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.have, s.renew = t, true, time.Time{}
	if !t.Expires.IsZero() {
		life := t.Expires.Sub(began)
		s.renew = began.Add(life/3*2 + s.jitter(life/12))
	}
	return t.Value, nil
}

// postpone lets the next fetch wait, for up to a quarter of what is left.
func (s *TokenSource) postpone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	ceiling := min(s.token.Expires.Sub(now)/4, renewPauseMax)
	s.renew = now.Add(ceiling/2 + s.jitter(ceiling/2))
}
