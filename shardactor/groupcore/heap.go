package groupcore

// heap holds items with the least on top. Each item knows its place, so that any can be taken out.
type heap[T any] struct {
	items []T
	less  func(a, b T) bool
	place func(T) *int // 0: not in a heap
}

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) top() T { return h.items[0] }

func (h *heap[T]) push(x T) {
	if *h.place(x) != 0 {
		panic("groupcore: something is put into two heaps")
	}
	h.items = append(h.items, x)
	h.up(len(h.items) - 1)
}

// remove takes x out; it is in this heap.
func (h *heap[T]) remove(x T) {
	i, last := *h.place(x)-1, len(h.items)-1
	*h.place(x) = 0
	moved := h.items[last]
	var none T
	h.items[last] = none
	h.items = h.items[:last]
	if i == last {
		return
	}
	h.items[i] = moved
	h.down(h.up(i))
}

// up moves item i towards the top and returns where it ends.
func (h *heap[T]) up(i int) int {
	x := h.items[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(x, h.items[parent]) {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	h.put(i, x)
	return i
}

func (h *heap[T]) down(i int) {
	x := h.items[i]
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if child+1 < len(h.items) && h.less(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.less(h.items[child], x) {
			break
		}
		h.put(i, h.items[child])
		i = child
	}
	h.put(i, x)
}

func (h *heap[T]) put(i int, x T) {
	h.items[i] = x
	*h.place(x) = i + 1
}
