package segment

// sector is the smallest piece that a disk writes whole, in bytes.
const sector = 512

// zeroTail reports whether the file from position to its end is what a power cut leaves of a write whose length reached the disk
// and whose bytes did not: zeros only, or zeros from a sector's border inside the batch at position. inside is how many bytes
// from position belong to that batch, as far as it is known. The byte before the zeros must not be zero: else a rotten batch whose
// payload ends in zeros would pass for one that was never written.
func zeroTail(w *window, position, inside int64) (bool, error) {
	last := position - 1 // of the bytes that are not zero
	at := position
	err := w.each(position, w.size, func(p []byte) {
		for i := len(p) - 1; i >= 0; i-- {
			if p[i] != 0 {
				last = at + int64(i)
				break
			}
		}
		at += int64(len(p))
	})
	zeros := last + 1
	return zeros < w.size && (zeros == position || zeros%sector == 0 && zeros < position+inside), err
}

// batchFollows reports whether the header of a batch of this log begins anywhere past position: then what is damaged there is not the
// tail of the log.
func batchFollows(w *window, salt Salt, position int64) (bool, error) {
	for at := position + 1; at+BatchHeaderSize <= w.size; at++ {
		head, err := w.bytes(at, BatchHeaderSize)
		if err != nil {
			return false, err
		}
		if be.Uint32(head) != batchMagic {
			continue
		}
		if _, err := DecodeBatchHeader(head, salt); err == nil {
			return true, nil
		}
	}
	return false, nil
}
