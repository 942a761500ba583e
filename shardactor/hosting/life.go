package hosting

import "time"

// Life is one shard of a node, over all its incarnations. The zero value is one that was never brought up.
//
//  1. an incarnation is brought up only when none runs and the files of the one before it are closed;
//  2. the files of each incarnation are closed once, after it has terminated;
//  3. of a shard that was removed none comes up again; its files are set aside, if they are not to be used any more, after they were closed.
type Life struct {
	removed  bool
	running  bool
	files    bool // it has files, open or closed, in their place
	closing  bool // they are on their way to be closed, or to be set aside
	again    bool // it is brought up when they are closed
	aside    bool // they are set aside when they are closed
	retryAt  time.Time
	restarts Restarts
}

// Then is what is to be done about a shard now.
type Then uint8

const (
	Nothing Then = iota
	// Start brings up an incarnation; Started or Waiting is the answer.
	Start
	// Stop stops the one that runs; Terminated is the answer.
	Stop
	// Close closes the files, and Aside takes closed ones out of the way; FilesEnded is the answer to both.
	Close
	Aside
	// Free lets go of the place of the files: who waits for it may have it.
	Free
)

// Running reports whether an incarnation is up, and Removed whether the shard is not wanted any more.
func (l *Life) Running() bool { return l.running }
func (l *Life) Removed() bool { return l.removed }

// Unused reports whether the files are not to be used any more.
func (l *Life) Unused() bool { return l.removed && l.aside }

// Started says that an incarnation was brought up, with files or none.
func (l *Life) Started(files bool) { l.running, l.files = true, files }

// Remove says that the shard is not wanted any more, and whether its files are not either. quarantined reports that it was left alone until now.
func (l *Life) Remove(aside bool) (then Then, quarantined bool) {
	quarantined = !l.retryAt.IsZero()
	l.removed, l.aside, l.retryAt, l.again = true, aside, time.Time{}, false
	switch {
	case l.running:
		return Stop, quarantined
	case l.files && !l.closing:
		return l.left(), quarantined
	}
	return Nothing, quarantined
}

// Unwanted says of a shard that was removed that its files are not to be used any more after all: who waited for them was removed too.
func (l *Life) Unwanted() { l.aside = true }

// left is for closed files of a shard that was removed.
func (l *Life) left() Then {
	if l.aside {
		l.closing = true
		return Aside
	}
	l.files = false
	return Free
}

// Terminated says that the incarnation has ended. failed reports that it comes up again for that, when Failed says; Close is what is then to
// be done with files.
func (l *Life) Terminated(panicked, draining bool) (then Then, failed bool) {
	l.running = false
	if l.files {
		l.closing = true
		then = Close
	}
	return then, panicked && !draining && !l.removed
}

// Failed notes a failure of an incarnation that has ended, and returns what to do, and when it comes up again: now, or later if it is
// quarantined.
func (l *Life) Failed(now time.Time) (then Then, at time.Time, quarantined bool) {
	at, quarantined = l.restarts.Failed(now)
	if quarantined {
		l.retryAt = at
		return Nothing, at, true
	}
	return l.Again(), at, false
}

// Again is what to do so that it comes up: Start, or Nothing if it will be when its files are closed.
func (l *Life) Again() Then {
	if l.closing {
		l.again = true
		return Nothing
	}
	return Start
}

// FilesEnded says that the files were closed, or that they were set aside.
func (l *Life) FilesEnded(aside, draining bool) Then {
	l.closing = false
	switch {
	case l.removed && l.aside && !aside:
		return l.left()
	case l.removed:
		l.files = false
		return Free
	case l.again && !draining:
		l.again = false
		return Start
	}
	return Nothing
}

// RetryAt is when a quarantined shard is brought up again; zero if it is not quarantined.
func (l *Life) RetryAt() time.Time { return l.retryAt }

// Retry ends a quarantine whose time has come; due is false otherwise.
func (l *Life) Retry(now time.Time) (then Then, due bool) {
	if l.retryAt.IsZero() || now.Before(l.retryAt) {
		return Nothing, false
	}
	l.retryAt = time.Time{}
	return l.Again(), true
}
