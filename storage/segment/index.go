package segment

import "github.com/felixd/felixd/wire/id"

const (
	// IndexHeaderSize is the length of what stands before the entries of an index, in bytes.
	IndexHeaderSize = 48
	// IndexEntrySize is the length of one entry, in bytes.
	IndexEntrySize = 24
	// DefaultIndexSpacing is the least distance between indexed batches, in bytes of the segment.
	DefaultIndexSpacing = 4096
)

// IndexEntry is a place to start reading at. It is a hint: what is found there is checked like everything else.
type IndexEntry struct {
	Offset   id.Offset // base of the batch
	Position int64     // of the batch in the segment, in bytes
	Micros   uint64    // append time of the batch
}

// Index holds places of a segment: its first batch, then each batch that begins at least the spacing past the last one here.
type Index struct {
	ID      uint64    // of the segment
	Base    id.Offset // of the segment
	Entries []IndexEntry
}

// Note adds a batch of the segment, in order, if it is one to be indexed. spacing 0 is DefaultIndexSpacing.
func (x *Index) Note(position int64, h *BatchHeader, spacing int64) {
	if spacing <= 0 {
		spacing = DefaultIndexSpacing
	}
	if n := len(x.Entries); n > 0 && position-x.Entries[n-1].Position < spacing {
		return
	}
	x.Entries = append(x.Entries, IndexEntry{Offset: h.Base, Position: position, Micros: h.AppendMicros})
}

// Before is the last entry whose batch begins at or before an offset; false if there is none.
func (x *Index) Before(offset id.Offset) (IndexEntry, bool) {
	low, high := 0, len(x.Entries)
	for low < high {
		if mid := (low + high) / 2; x.Entries[mid].Offset <= offset {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return IndexEntry{}, false
	}
	return x.Entries[low-1], true
}

// AppendIndex appends a whole index file to dst.
//
//	 0 u32 magic | 4 u16 version | 6 u16 flags 0 | 8 [16] log | 24 u64 segment id | 32 u64 base | 40 u32 entries
//	44 u32 checksum over (log, 0..44, entries) | 48 entries: offset u64, position u64, append micros u64
func AppendIndex(dst []byte, salt Salt, x *Index) []byte {
	start := len(dst)
	dst = be.AppendUint32(dst, indexMagic)
	dst = be.AppendUint16(dst, Version)
	dst = be.AppendUint16(dst, 0)
	log := salt.Log()
	dst = append(dst, log[:]...)
	dst = be.AppendUint64(dst, x.ID)
	dst = be.AppendUint64(dst, uint64(x.Base))
	dst = be.AppendUint32(dst, uint32(len(x.Entries)))
	dst = be.AppendUint32(dst, 0) // the checksum, below
	for _, e := range x.Entries {
		dst = be.AppendUint64(dst, uint64(e.Offset))
		dst = be.AppendUint64(dst, uint64(e.Position))
		dst = be.AppendUint64(dst, e.Micros)
	}
	body := dst[start+IndexHeaderSize:]
	be.PutUint32(dst[start+44:], Extend(salt.over(dst[start:start+44]), body))
	return dst
}

// DecodeIndex reads the whole of an index file and checks what can be checked without its segment: that positions lie between
// HeaderSize and end, and that offsets and positions ascend. Errors are *CorruptionError with Kind IndexDamaged, and *VersionError;
// the answer to both is to build the index anew. It allocates for the entries that are there, not for those that are announced.
func DecodeIndex(b []byte, salt Salt, h *Header, end int64) (Index, error) {
	damaged := func(why string) error { return &CorruptionError{Kind: IndexDamaged, Why: why} }
	if len(b) < IndexHeaderSize || be.Uint32(b) != indexMagic {
		return Index{}, damaged("it does not begin with its header")
	}
	if want, found := be.Uint32(b[44:]), Extend(salt.over(b[:44]), b[IndexHeaderSize:]); want != found {
		return Index{}, &CorruptionError{Kind: IndexDamaged, Expected: uint64(want), Found: uint64(found), Why: "its checksum does not fit"}
	}
	if v := be.Uint16(b[4:]); v != Version {
		return Index{}, &VersionError{What: "version", Found: v, Known: Version}
	}
	x := Index{ID: be.Uint64(b[24:]), Base: id.Offset(be.Uint64(b[32:]))}
	body := b[IndexHeaderSize:]
	switch {
	case be.Uint16(b[6:]) != 0 || id.LogID(b[8:24]) != h.Log || x.ID != h.ID || x.Base != h.Base:
		return Index{}, damaged("it is of another segment")
	case len(body)%IndexEntrySize != 0 || uint64(be.Uint32(b[40:])) != uint64(len(body)/IndexEntrySize):
		return Index{}, damaged("it has another number of entries than it says")
	}
	x.Entries = make([]IndexEntry, 0, len(body)/IndexEntrySize)
	for ; len(body) > 0; body = body[IndexEntrySize:] {
		x.Entries = append(x.Entries, IndexEntry{
			Offset: id.Offset(be.Uint64(body)), Position: int64(be.Uint64(body[8:])), Micros: be.Uint64(body[16:]),
		})
	}
	if !x.ascends(end) {
		return Index{}, damaged("its entries do not ascend inside the segment")
	}
	return x, nil
}

// ascends reports whether the entries can be those of a segment whose batches end at end.
func (x *Index) ascends(end int64) bool {
	for i, e := range x.Entries {
		switch {
		case i == 0 && (e.Offset != x.Base || e.Position != HeaderSize),
			i > 0 && (e.Offset <= x.Entries[i-1].Offset || e.Position < x.Entries[i-1].Position+BatchHeaderSize),
			e.Position > end-BatchHeaderSize:
			return false
		}
	}
	return len(x.Entries) > 0 || end == HeaderSize
}
