package segment

import (
	"bytes"
	"errors"
	"testing"

	"github.com/felixd/felixd/storage/vfs"
)

// typed fails unless an error of a decoder is one that says what is wrong.
func typed(t *testing.T, err error) {
	t.Helper()
	var c *CorruptionError
	var v *VersionError
	if !errors.As(err, &c) && !errors.As(err, &v) {
		t.Fatalf("the decoder answers %v", err)
	}
	if err.Error() == "" || c != nil && c.Kind.String() == "" {
		t.Fatal("the error has no text")
	}
}

// seedVectors adds every vector of a layout, whole and damaged.
func seedVectors(f *testing.F, layout string) {
	for _, v := range loadVectors(f).Files {
		if v.Layout != layout {
			continue
		}
		b := unhex(f, v.Hex)
		f.Add(b)
		f.Add(b[:len(b)-1])
		f.Add(append(bytes.Clone(b), 0))
		for _, i := range []int{0, 4, 6, 8, len(b) / 2, len(b) - 1} {
			c := bytes.Clone(b)
			c[i] ^= 0x41
			f.Add(c)
		}
	}
	f.Add([]byte{})
}

func fuzzSalt(f *testing.F) Salt { return SaltOf([16]byte(unhex(f, loadVectors(f).Log))) }

// roundTrip is a fuzz target: what decodes encodes to the same bytes, and what does not fails by type. Each input is tried as it is,
// and with the checksum that it should have, so that what is behind the checksum is reached.
func roundTrip(f *testing.F, layout string, fit func(b []byte), decode func(b []byte) (again []byte, err error)) {
	seedVectors(f, layout)
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		for range 2 {
			again, err := decode(b)
			if err != nil {
				typed(t, err)
			} else if !bytes.Equal(again, b[:min(len(again), len(b))]) || len(again) > len(b) {
				t.Fatalf("%x encodes to %x", b, again)
			}
			fit(b)
		}
	})
}

// fitEnd is the checksum of a small file, in its last four bytes.
func fitEnd(size int, salt Salt) func(b []byte) {
	return func(b []byte) {
		if len(b) >= size {
			be.PutUint32(b[size-4:], salt.over(b[:size-4]))
		}
	}
}

// fitStart is the checksum of a structure inside a segment, in its second word.
func fitStart(size int, salt Salt) func(b []byte) {
	return func(b []byte) {
		if len(b) >= size {
			be.PutUint32(b[4:], salt.over(b[8:size]))
		}
	}
}

// fitBody is the checksum of a header with a body behind it, at the header's end.
func fitBody(size int, salt Salt) func(b []byte) {
	return func(b []byte) {
		if len(b) >= size {
			be.PutUint32(b[size-4:], Extend(salt.over(b[:size-4]), b[size:]))
		}
	}
}

func FuzzHeader(f *testing.F) {
	roundTrip(f, "header", func(b []byte) {
		if len(b) >= HeaderSize {
			be.PutUint32(b[60:], Sum(b[:60]))
		}
	}, func(b []byte) ([]byte, error) {
		h, err := DecodeHeader(b)
		return AppendHeader(nil, &h), err
	})
}

func FuzzBatchHeader(f *testing.F) {
	salt := fuzzSalt(f)
	roundTrip(f, "batch", fitStart(BatchHeaderSize, salt), func(b []byte) ([]byte, error) {
		h, err := DecodeBatchHeader(b, salt)
		return AppendBatchHeader(nil, salt, &h), err
	})
}

func FuzzFooter(f *testing.F) {
	salt := fuzzSalt(f)
	roundTrip(f, "footer", fitStart(FooterSize, salt), func(b []byte) ([]byte, error) {
		h, err := DecodeFooter(b, salt)
		return AppendFooter(nil, salt, &h), err
	})
}

func FuzzMark(f *testing.F) {
	salt := fuzzSalt(f)
	roundTrip(f, "mark", fitEnd(MarkSize, salt), func(b []byte) ([]byte, error) {
		m, err := DecodeMark(b, salt)
		return AppendMark(nil, salt, &m), err
	})
}

func FuzzReplica(f *testing.F) {
	salt := fuzzSalt(f)
	roundTrip(f, "replica", func(b []byte) { fitEnd(max(len(b), ReplicaSize), salt)(b) }, func(b []byte) ([]byte, error) {
		r, err := DecodeReplica(b, salt)
		return AppendReplica(nil, salt, &r), err
	})
}

func FuzzMeta(f *testing.F) {
	roundTrip(f, "meta", func(b []byte) {
		if len(b) >= MetaSize {
			fitEnd(MetaSize, SaltOf([16]byte(b[8:24])))(b)
		}
	}, func(b []byte) ([]byte, error) {
		m, err := DecodeMeta(b)
		return AppendMeta(nil, &m), err
	})
}

func FuzzIndex(f *testing.F) {
	salt := fuzzSalt(f)
	h := Header{Log: salt.Log(), ID: 3, Base: 1}
	roundTrip(f, "index", fitBody(IndexHeaderSize, salt), func(b []byte) ([]byte, error) {
		x, err := DecodeIndex(b, salt, &h, 1<<20)
		return AppendIndex(nil, salt, &x), err
	})
}

func FuzzSnapshot(f *testing.F) {
	salt := fuzzSalt(f)
	roundTrip(f, "snapshot", fitBody(SnapshotHeaderSize, salt), func(b []byte) ([]byte, error) {
		asOf, body, err := DecodeSnapshot(b, salt)
		return AppendSnapshot(nil, salt, asOf, body), err
	})
}

// FuzzStream reads a streamed snapshot.
func FuzzStream(f *testing.F) {
	salt := fuzzSalt(f)
	roundTrip(f, "stream", func(b []byte) { fitStream(b, salt) }, func(b []byte) ([]byte, error) {
		asOf, body, err := readStreamed(b, salt)
		if err != nil {
			return nil, err
		}
		again := streamed(salt, asOf, body)
		if len(again) != len(b) {
			f.Fatalf("%d bytes encode to %d", len(b), len(again))
		}
		return again, nil
	})
}

// fitStream gives the ends of a streamed snapshot, and the chunks between as far as they can be told, the checksums they should have, and
// the trailer the length that the file has room for.
func fitStream(b []byte, salt Salt) {
	if len(b) < StreamHeaderSize+StreamTrailerSize {
		return
	}
	sum := salt.over(b[:12])
	be.PutUint32(b[12:], sum)
	body, chunks := uint64(0), b[StreamHeaderSize:len(b)-StreamTrailerSize]
	for len(chunks) > streamChunkHeader {
		n := min(len(chunks)-streamChunkHeader, StreamChunkMax)
		sum = Extend(Extend(sum, chunks[:4]), chunks[streamChunkHeader:streamChunkHeader+n])
		be.PutUint32(chunks[4:], sum)
		body, chunks = body+uint64(n), chunks[streamChunkHeader+n:]
	}
	t := b[len(b)-StreamTrailerSize:]
	be.PutUint64(t[16:], body)
	be.PutUint32(t[32:], sum)
	be.PutUint32(t[36:], salt.over(t[:36]))
}

// FuzzScan walks anything that has a header in front of it.
func FuzzScan(f *testing.F) {
	whole := unhex(f, loadVectors(f).Segment.Hex)
	h, err := DecodeHeader(whole)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[HeaderSize:])
	for _, i := range []int{HeaderSize, HeaderSize + 30, len(whole) / 2, len(whole) - 3} {
		c := bytes.Clone(whole)
		c[i] ^= 2
		f.Add(c[HeaderSize:])
		f.Add(whole[HeaderSize:i])
	}
	f.Fuzz(func(t *testing.T, rest []byte) {
		b := append(bytes.Clone(whole[:HeaderSize]), rest...)
		next := h.Base
		got, err := Scan(bytes.NewReader(b), int64(len(b)), &h, func(position int64, batch *BatchHeader) error {
			if batch.Base != next || position+batch.Size() > int64(len(b)) {
				t.Fatalf("a batch at %d is %+v", position, batch)
			}
			next = batch.End()
			return nil
		})
		if err != nil {
			typed(t, err)
		} else if got.Size() != int64(len(b)) {
			t.Fatalf("no failure, and %d of %d bytes were walked", got.Size(), len(b))
		}
		if got.Next != next || got.Size() > int64(len(b)) || got.FileSum != Sum(b[:got.End]) {
			t.Fatalf("the scan tells %+v", got)
		}
	})
}

// FuzzPlan plans a directory in which two files hold anything.
func FuzzPlan(f *testing.F) {
	w, disk, _ := live(f, 3, 12, false)
	newest := load(f, disk, FileName(w.h.ID))
	f.Add(newest, load(f, disk, MarkName), uint8(0))
	f.Add(newest[:len(newest)/2], load(f, disk, MarkName), uint8(1))
	f.Add(newest, []byte{}, uint8(2))
	f.Add(make([]byte, 4096), load(f, disk, MarkName), uint8(5))
	f.Fuzz(func(t *testing.T, segment, mark []byte, mode uint8) {
		image := disk.Clone()
		w := *w
		w.t = t
		store(t, image, FileName(w.h.ID), segment)
		store(t, image, MarkName, mark)
		in := w.input(image)
		in.Verify, in.Repair = Verify(mode%3), Repair(mode/3%3)
		p, err := NewPlan(in)
		if err != nil {
			typed(t, err)
			return
		}
		w.apply(image, p)
		after := w.input(image)
		after.Verify = in.Verify
		if again, err := NewPlan(after); err != nil || again.Next != p.Next || again.Cut != nil {
			t.Fatalf("a second plan decides %+v, %v", again, err)
		}
	})
}

// FuzzNames parses names of files and directories.
func FuzzNames(f *testing.F) {
	f.Add("acme_default_orders_0-0d3aed4b998d2798-0000000000000001")
	f.Add(FileName(7))
	f.Add(IndexName(7))
	f.Fuzz(func(t *testing.T, name string) {
		if n, ok := ParseFileName(name); ok && FileName(n) != name {
			t.Fatalf("%q is taken for segment %d", name, n)
		}
		if n, ok := ParseIndexName(name); ok && IndexName(n) != name {
			t.Fatalf("%q is taken for the index %d", name, n)
		}
		hash, inc, ok := ParseDirName(name)
		k := Key{Tenant: name, Namespace: name, Name: name, Shard: 3}
		if ok && hash == 0 && inc == 0 {
			return
		}
		dir := DirName(&k, inc)
		if h, i, ok := ParseDirName(dir); !ok || h != k.Hash() || i != inc {
			t.Fatalf("%q parses to %x %x %v", dir, h, uint64(i), ok)
		}
		if _, err := vfs.NewMem().Create(dir); err != nil {
			t.Fatalf("%q is no name for a file: %v", dir, err)
		}
	})
}
