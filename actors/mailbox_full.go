package actors

import "time"

// fullNotes limits how often an actor that refuses says so.
type fullNotes struct {
	said    bool
	at      time.Time
	refused uint64 // since the last event
}

// refuse unlocks mu, counts and reports a refusal for want of room, and returns its error.
func (b *mailbox) refuse(items, bytes int) error {
	err := &FullError{Path: b.path, Items: items, Bytes: bytes, LimitItems: b.bounds.DataItems, LimitBytes: b.bounds.DataBytes}
	b.full.refused++
	now := b.sys.clock.Now()
	say := !b.full.said || now.Sub(b.full.at) >= fullEventEvery
	refused := b.full.refused
	if say {
		b.full = fullNotes{said: true, at: now}
	}
	b.mu.Unlock()
	b.kind.refusedFull.Inc()
	if say {
		b.sys.Emit(MailboxFull{Full: *err, Kind: b.kind.name, Refused: refused})
	}
	return err
}
