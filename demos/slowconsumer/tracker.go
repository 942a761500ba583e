package main

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// recordHeader is how many bytes of a record the demo needs: its number, from 0, as a big-endian u64.
const recordHeader = 8

// putNumber writes the number of a record.
func putNumber(record []byte, n uint64) { binary.BigEndian.PutUint64(record, n) }

// tally is what a subscriber has seen.
type tally struct {
	received uint64 // records
	lost     uint64 // numbers that were passed over
	next     uint64 // number that comes next; received + lost
}

// tracker counts losses by the numbers in the records. Its reader and the screen use it at the same time.
type tracker struct {
	mu  sync.Mutex
	now tally
}

// take notes one record. A number that was passed already breaks the promise of a shard's order, and is an error.
func (t *tracker) take(record []byte) error {
	if len(record) < recordHeader {
		return fmt.Errorf("a record of %d bytes has no number", len(record))
	}
	n := binary.BigEndian.Uint64(record)
	t.mu.Lock()
	defer t.mu.Unlock()
	if n < t.now.next {
		return fmt.Errorf("record %d came when %d was next: it was repeated or out of order", n, t.now.next)
	}
	t.now.lost += n - t.now.next
	t.now.received++
	t.now.next = n + 1
	return nil
}

func (t *tracker) tally() tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}
