package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/felixd/felixd/wire/id"
)

// streamed is a streamed snapshot as a file, written in pieces of all sizes.
func streamed(salt Salt, asOf id.Offset, body []byte) []byte {
	var out bytes.Buffer
	w := NewStreamWriter(&out, salt)
	for piece := 1; len(body) > 0; piece = piece*7 + 1 {
		n := min(piece, len(body))
		if k, err := w.Write(body[:n]); k != n || err != nil {
			panic(fmt.Sprintf("%d of %d bytes were written: %v", k, n, err))
		}
		body = body[n:]
	}
	if err := w.Finish(asOf); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// readStreamed reads one whole.
func readStreamed(b []byte, salt Salt) (id.Offset, []byte, error) {
	r := bytes.NewReader(b)
	t, err := ReadStreamTrailer(r, int64(len(b)), salt)
	if err != nil {
		return 0, nil, err
	}
	body, err := io.ReadAll(NewStreamReader(r, int64(len(b)), salt, &t))
	return t.AsOf, body, err
}

var (
	streamSalt  = SaltOf(id.LogID{1, 2, 3})
	streamOther = SaltOf(id.LogID{1, 2, 4})
)

func noise(n int) []byte {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestAStreamedSnapshotComesBackAtEverySize(t *testing.T) {
	for _, n := range []int{0, 1, StreamChunkMax - 1, StreamChunkMax, StreamChunkMax + 1, 2 * StreamChunkMax, 5*StreamChunkMax + 77} {
		body := noise(n)
		b := streamed(streamSalt, 99, body)
		if !IsStream(b) || IsSnapshot(b) || int64(len(b)) != StreamFileSize(int64(n)) {
			t.Fatalf("%d bytes take %d, and were to take %d", n, len(b), StreamFileSize(int64(n)))
		}
		asOf, got, err := readStreamed(b, streamSalt)
		if err != nil || asOf != 99 || !bytes.Equal(got, body) {
			t.Fatalf("%d bytes come back as %d as of %d: %v", n, len(got), asOf, err)
		}
		tr, _ := ReadStreamTrailer(bytes.NewReader(b), int64(len(b)), streamSalt)
		r := NewStreamReader(bytes.NewReader(b), int64(len(b)), streamSalt, &tr)
		if got, err = io.ReadAll(iotest.OneByteReader(r)); n < 1<<20 && (err != nil || !bytes.Equal(got, body)) {
			t.Fatalf("byte by byte, %d bytes come back as %d: %v", n, len(got), err)
		}
	}
}

// readDamaged reads what is not whole: it must fail by type, and hand out nothing but the beginning of what was written once.
func readDamaged(t *testing.T, what string, b []byte, salt Salt, bodies ...[]byte) {
	t.Helper()
	_, got, err := readStreamed(b, salt)
	if err == nil {
		t.Fatalf("%s: it reads as whole", what)
	}
	typed(t, err)
	if !slices.ContainsFunc(bodies, func(body []byte) bool { return bytes.HasPrefix(body, got) }) {
		t.Fatalf("%s: bytes came out that were never written", what)
	}
}

func TestNoFlippedBitOrOtherLengthOfAStreamedSnapshotPasses(t *testing.T) {
	body := noise(90)
	whole := streamed(streamSalt, 99, body)
	for bit := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		readDamaged(t, "a flipped bit", b, streamSalt, body)
	}
	for n := range whole {
		readDamaged(t, "cut short", whole[:n], streamSalt, body)
		readDamaged(t, "grown", append(bytes.Clone(whole), whole[:n+1]...), streamSalt, body)
		readDamaged(t, "grown by zeros", append(bytes.Clone(whole), make([]byte, n+1)...), streamSalt, body)
	}
	readDamaged(t, "of another log", whole, streamOther, body)
}

func TestMovedChunksOfAStreamedSnapshotDoNotPass(t *testing.T) {
	const chunk = StreamChunkMax + streamChunkHeader
	body := noise(3*StreamChunkMax + 5)
	whole := streamed(streamSalt, 99, body)
	before := noise(3*StreamChunkMax + 6)[:len(body)]
	older := streamed(streamSalt, 98, before)
	foreign := streamed(streamOther, 99, body)
	at := func(b []byte, n int) []byte { return b[StreamHeaderSize+n*chunk:][:chunk] }
	end := func(b []byte) []byte { return b[len(b)-StreamTrailerSize:] }
	for what, edit := range map[string]func(b []byte){
		"two swapped":                 func(b []byte) { copy(at(b, 0), at(whole, 1)); copy(at(b, 1), at(whole, 0)) },
		"one twice":                   func(b []byte) { copy(at(b, 1), at(whole, 0)) },
		"one of an older snapshot":    func(b []byte) { copy(at(b, 1), at(older, 1)) },
		"the first of an older one":   func(b []byte) { copy(at(b, 0), at(older, 0)) },
		"all of an older one":         func(b []byte) { copy(b, older[:len(older)-StreamTrailerSize]) },
		"the end of an older one":     func(b []byte) { copy(end(b), end(older)) },
		"one of another log":          func(b []byte) { copy(at(b, 2), at(foreign, 2)) },
		"the end of another log's":    func(b []byte) { copy(end(b), end(foreign)) },
		"a hole":                      func(b []byte) { clear(at(b, 1)) },
		"a sector that did not come":  func(b []byte) { clear(at(b, 2)[512:1024]) },
		"a length that is impossible": func(b []byte) { be.PutUint32(at(b, 1), 0xFFFFFFFF) },
	} {
		b := bytes.Clone(whole)
		edit(b)
		readDamaged(t, what, b, streamSalt, body, before)
	}
	short := append(bytes.Clone(whole[:StreamHeaderSize]), whole[StreamHeaderSize+chunk:]...)
	readDamaged(t, "the first left out", short, streamSalt, body)
}

func TestAStreamedSnapshotCostsNoMemoryThatItsFileDoesNotHave(t *testing.T) {
	b := streamed(streamSalt, 1, []byte("abc"))
	be.PutUint32(b[StreamHeaderSize:], 1<<31)
	tr, err := ReadStreamTrailer(bytes.NewReader(b), int64(len(b)), streamSalt)
	if err != nil {
		t.Fatal(err)
	}
	r := NewStreamReader(bytes.NewReader(b), int64(len(b)), streamSalt, &tr)
	if _, err := r.Read(make([]byte, 8)); err == nil || cap(r.buf) > 0 {
		t.Fatalf("%v, and %d bytes were made", err, cap(r.buf))
	}
	first := errorOf(r)
	if again := errorOf(r); first == nil || first != again {
		t.Fatalf("an error does not stay: %v, then %v", first, again)
	}
	for _, claim := range []uint64{0, 2, 4, 11, 1 << 31, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		b := streamed(streamSalt, 1, []byte("abc"))
		end := b[len(b)-StreamTrailerSize:]
		be.PutUint64(end[16:], claim)
		be.PutUint32(end[36:], streamSalt.over(end[:36]))
		readDamaged(t, fmt.Sprintf("a body of %d bytes, it says", claim), b, streamSalt, nil)
	}
}

func errorOf(r io.Reader) error {
	_, err := r.Read(make([]byte, 1))
	return err
}

// failing takes so many bytes.
type failing struct{ room int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestAWriterOfAStreamThatFailedSaysSoToTheEnd(t *testing.T) {
	w := NewStreamWriter(&failing{room: 2 * StreamChunkMax}, streamSalt)
	_, err := w.Write(noise(4 * StreamChunkMax))
	_, again := w.Write([]byte("x"))
	if !errors.Is(err, errFull) || !errors.Is(again, errFull) || !errors.Is(w.Finish(1), errFull) {
		t.Fatal(err, again)
	}
	for room := range 80 {
		w = NewStreamWriter(&failing{room: room}, streamSalt)
		_, err = w.Write([]byte("state"))
		if end := w.Finish(1); err != nil || (end == nil) != (room >= 16+8+5+40) {
			t.Fatalf("with room for %d bytes: %v, %v", room, err, end)
		}
	}
}

func TestANewerStreamedSnapshotIsToldApartFromDamage(t *testing.T) {
	b := streamed(streamSalt, 1, []byte("abc"))
	be.PutUint16(b[4:], 2)
	be.PutUint32(b[12:], streamSalt.over(b[:12]))
	var v *VersionError
	if _, _, err := readStreamed(b, streamSalt); !errors.As(err, &v) || v.Found != 2 {
		t.Fatal(err)
	}
}
