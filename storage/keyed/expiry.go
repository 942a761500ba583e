package keyed

// ends orders the entries that end by when they do: a heap with four children per node, in pages, so that growing copies nothing. Each
// entry's block knows its place, so that an entry that is replaced or deleted leaves at once: there are never more places than entries.
//
//  1. place i holds {expires, ref} of a block with place() == i+1 and that expiry;
//  2. no entry ends before the one at (i-1)/4.
type ends struct {
	pages []*[endsPage]end
	n     int
}

type end struct {
	expires uint64
	at      ref
}

const (
	endsPage  = 256
	endsWidth = 4
	endBytes  = 16 // of one place
)

func (h *ends) get(i int) *end { return &h.pages[i/endsPage][i%endsPage] }

func (h *ends) bytes() int64 { return int64(len(h.pages)) * endsPage * endBytes }

// set puts e at place i and tells its block.
func (h *ends) set(a *arena, i int, e end) {
	*h.get(i) = e
	a.at(e.at).setPlace(uint32(i + 1))
}

func (h *ends) push(a *arena, expires uint64, r ref) {
	if h.n == len(h.pages)*endsPage {
		h.pages = append(h.pages, new([endsPage]end))
	}
	h.n++
	h.up(a, h.n-1, end{expires, r})
}

// drop takes place i out.
func (h *ends) drop(a *arena, i int) {
	h.n--
	last := *h.get(h.n)
	if i < h.n {
		h.fix(a, i, last)
	}
	if spare := len(h.pages) - 1; h.n <= (spare-1)*endsPage || h.n == 0 {
		h.pages[spare] = nil
		h.pages = h.pages[:spare]
	}
}

// fix puts e where it belongs, at place i or above or below it.
func (h *ends) fix(a *arena, i int, e end) {
	if i > 0 && e.expires < h.get((i-1)/endsWidth).expires {
		h.up(a, i, e)
		return
	}
	h.down(a, i, e)
}

func (h *ends) up(a *arena, i int, e end) {
	for i > 0 {
		parent := (i - 1) / endsWidth
		p := *h.get(parent)
		if p.expires <= e.expires {
			break
		}
		h.set(a, i, p)
		i = parent
	}
	h.set(a, i, e)
}

func (h *ends) down(a *arena, i int, e end) {
	for {
		child, least := -1, e.expires
		for c := i*endsWidth + 1; c <= i*endsWidth+endsWidth && c < h.n; c++ {
			if x := h.get(c).expires; x < least {
				child, least = c, x
			}
		}
		if child < 0 {
			break
		}
		h.set(a, i, *h.get(child))
		i = child
	}
	h.set(a, i, e)
}

// due calls f for entries that have ended at now, limit at most, in no order. It looks at no more than endsWidth places for each.
func (h *ends) due(now uint64, limit int, f func(ref)) {
	todo := make([]int, 0, 64)
	if h.n > 0 {
		todo = append(todo, 0)
	}
	for len(todo) > 0 && limit > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		e := h.get(i)
		if e.expires > now {
			continue
		}
		f(e.at)
		limit--
		for c := i*endsWidth + 1; c <= i*endsWidth+endsWidth && c < h.n; c++ {
			todo = append(todo, c)
		}
	}
}
