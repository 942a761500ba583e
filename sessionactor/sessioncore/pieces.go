package sessioncore

// Pieces says which bytes of a large page come next, for an event stream that may not keep the page: it gives its client as much as that takes at
// once, lets go of the page, waits with one piece, and makes the page again. The bytes of a page, and how often Once is asked in between, are the
// same each time. The zero value is a page of which nothing was given. It is not safe for concurrent use.
//
//  1. at is where in the page the attempt under way is, gave what the client has of it: nobody gives what lies below gave.
//  2. seen is how often Once was asked in this attempt, and counted how often in the longest one.
type Pieces struct {
	at, gave      int
	seen, counted int
}

// Again begins the next attempt at the page.
func (p *Pieces) Again() { p.at, p.seen = 0, 0 }

// Begun reports whether the client has something of the page.
func (p *Pieces) Begun() bool { return p.gave > 0 }

// Rest is what the client does not have yet of the bytes that come next. Those it has are behind, then.
func (p *Pieces) Rest(b []byte) []byte {
	passed := min(len(b), max(0, p.gave-p.at))
	p.at += passed
	return b[passed:]
}

// Gave says that the client was given the next n bytes of the page, by the attempt that is under way.
func (p *Pieces) Gave(n int) {
	if p.at < p.gave {
		panic("sessioncore: bytes of a page are given again")
	}
	p.at, p.gave = p.at+n, p.gave+n
}

// Took says that the client took the next n bytes between two attempts.
func (p *Pieces) Took(n int) { p.gave += n }

// Once reports whether no earlier attempt has come so far: for what is counted.
func (p *Pieces) Once() bool {
	if p.seen++; p.seen <= p.counted {
		return false
	}
	p.counted = p.seen
	return true
}
