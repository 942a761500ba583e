package segment

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// vectors mirrors testdata/vectors.json, which is written by vectors.py without any of the code under test.
type vectors struct {
	Log, Salt, Check string
	Files            []fileVector
	Names            []struct {
		Tenant, Namespace, Name, Incarnation, Hash, Dir string
		Shard                                           uint32
		NameHashes                                      map[string]string `json:"name_hashes"`
	}
	Segment struct {
		Hex     string
		Batches uint32
		End     string
		Bases   []string
	}
}

type fileVector struct {
	Name, Layout, Hex string
	Fields            map[string]any
}

// u64 is a number of a vector.
func (v *fileVector) u64(t *testing.T, field string) uint64 { return number(t, v.text(t, field)) }

func (v *fileVector) text(t *testing.T, field string) string {
	t.Helper()
	s, ok := v.Fields[field].(string)
	if !ok {
		t.Fatalf("vector %s has no %s", v.Name, field)
	}
	return s
}

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func loadVectors(t testing.TB) vectors {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Files) < 15 || len(v.Names) < 5 {
		t.Fatal("vectors.json is not complete, run vectors.py again")
	}
	return v
}

func TestVectorsAreWhatTheirScriptPrints(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Logf("python3 is not here, so vectors.json is taken as it is: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	script := exec.CommandContext(ctx, python, "vectors.py")
	script.Dir = "testdata"
	want, err := script.Output()
	if err != nil {
		t.Fatalf("vectors.py: %v", err)
	}
	got, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("vectors.json is not what vectors.py prints: run vectors.py again")
	}
}

func TestChecksumIsCastagnoli(t *testing.T) {
	v := loadVectors(t)
	if got := Sum([]byte("123456789")); uint64(got) != number(t, v.Check) {
		t.Errorf("Sum of the check text is %08x", got)
	}
	if salt := SaltOf(id.LogID(unhex(t, v.Log))); uint64(salt.Apply(0)) != number(t, v.Salt) {
		t.Errorf("the salt is %08x", salt.Apply(0))
	}
}

func TestEveryFileVectorDecodesAndEncodesToTheSameBytes(t *testing.T) {
	all := loadVectors(t)
	salt := SaltOf(id.LogID(unhex(t, all.Log)))
	check := map[string]func(*testing.T, *fileVector, Salt, []byte) (want, got any, again []byte){
		"header": headerVector, "batch": batchVector, "footer": footerVector, "mark": markVector, "replica": replicaVector,
		"meta": metaVector, "index": indexVector, "snapshot": snapshotVector, "stream": streamVector,
	}
	for _, v := range all.Files {
		t.Run(v.Name, func(t *testing.T) {
			data := unhex(t, v.Hex)
			want, got, again := check[v.Layout](t, &v, salt, data)
			if fmt.Sprintf("%+v", want) != fmt.Sprintf("%+v", got) {
				t.Errorf("decodes to\n%+v, want\n%+v", got, want)
			}
			if !bytes.Equal(again, data) {
				t.Errorf("encodes to\n%x, want\n%x", again, data)
			}
		})
	}
}

func headerVector(t *testing.T, v *fileVector, salt Salt, data []byte) (want, got any, again []byte) {
	h, err := DecodeHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	return Header{Log: salt.Log(), NameHash: v.u64(t, "name_hash"), Base: id.Offset(v.u64(t, "base")), CreatedMicros: v.u64(t, "created"),
		ID: v.u64(t, "segment")}, h, AppendHeader(nil, &h)
}

func batchVector(t *testing.T, v *fileVector, salt Salt, data []byte) (want, got any, again []byte) {
	h, err := DecodeBatchHeader(data, salt)
	if err != nil {
		t.Fatal(err)
	}
	body, stored, publisher := unhex(t, v.text(t, "body")), unhex(t, v.text(t, "stored")), v.text(t, "publisher")
	w := Describe(&batch.Batch{
		Base: id.Offset(v.u64(t, "base")), Count: uint32(v.u64(t, "count")), Kind: batch.Kind(v.u64(t, "kind")), Publisher: publisher, Body: body,
		Generation: id.Generation(v.u64(t, "generation")), AppendMicros: v.u64(t, "micros"), ProducerID: v.u64(t, "producer"), Sequence: v.u64(t, "sequence"),
	}, Sum(body))
	if v.Fields["compressed"] == true {
		w.Compressed, w.StoredLength, w.StoredSum = true, uint32(len(stored)), Extend(Sum([]byte(publisher)), stored)
	}
	if h.Size() != int64(len(data)) {
		t.Errorf("the batch has %d bytes, want %d", h.Size(), len(data))
	}
	return w, h, append(append(AppendBatchHeader(nil, salt, &h), publisher...), stored...)
}

func footerVector(t *testing.T, v *fileVector, salt Salt, data []byte) (want, got any, again []byte) {
	f, err := DecodeFooter(data, salt)
	if err != nil {
		t.Fatal(err)
	}
	return Footer{Length: int64(v.u64(t, "length")), FileSum: uint32(v.u64(t, "sum")), Batches: uint32(v.u64(t, "batches")), End: id.Offset(v.u64(t, "end")),
		MinMicros: v.u64(t, "least"), MaxMicros: v.u64(t, "greatest"), ID: v.u64(t, "segment")}, f, AppendFooter(nil, salt, &f)
}

func markVector(t *testing.T, v *fileVector, salt Salt, data []byte) (want, got any, again []byte) {
	m, err := DecodeMark(data, salt)
	if err != nil {
		t.Fatal(err)
	}
	return Mark{Segment: v.u64(t, "segment"), Synced: int64(v.u64(t, "synced")), Oldest: v.u64(t, "oldest"), Base: id.Offset(v.u64(t, "base")),
		Reset: v.Fields["reset"] == true, Summed: v.Fields["summed"] == true, Sum: uint32(v.u64(t, "sum"))}, m, AppendMark(nil, salt, &m)
}

func replicaVector(t *testing.T, v *fileVector, salt Salt, data []byte) (want, got any, again []byte) {
	r, err := DecodeReplica(data, salt)
	if err != nil {
		t.Fatal(err)
	}
	w := Replica{Generation: id.Generation(v.u64(t, "generation")), Commit: id.Offset(v.u64(t, "commit")), Held: v.Fields["held"] == true}
	lost, _ := v.Fields["lost"].(string)
	for _, entry := range strings.FieldsFunc(lost, func(r rune) bool { return r == ';' }) {
		f := strings.Split(entry, ",")
		w.Lost = append(w.Lost, LostEnd{id.Offset(number(t, f[0])), id.Offset(number(t, f[1])), id.Offset(number(t, f[2]))})
	}
	return w, r, AppendReplica(nil, salt, &r)
}

func metaVector(t *testing.T, v *fileVector, salt Salt, data []byte) (want, got any, again []byte) {
	m, err := DecodeMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	return Meta{Log: salt.Log(), Incarnation: id.Incarnation(v.u64(t, "incarnation")), Generation: id.Generation(v.u64(t, "generation")),
		NameHash: v.u64(t, "name_hash"), Kind: LogKind(v.u64(t, "kind")), CreatedMicros: v.u64(t, "created")}, m, AppendMeta(nil, &m)
}

func indexVector(t *testing.T, v *fileVector, salt Salt, data []byte) (want, got any, again []byte) {
	w := Index{ID: v.u64(t, "segment"), Base: id.Offset(v.u64(t, "base")), Entries: []IndexEntry{}}
	end := int64(HeaderSize)
	for _, entry := range strings.FieldsFunc(v.text(t, "entries"), func(r rune) bool { return r == ';' }) {
		f := strings.Split(entry, ",")
		w.Entries = append(w.Entries, IndexEntry{id.Offset(number(t, f[0])), int64(number(t, f[1])), number(t, f[2])})
		end = 1 << 20
	}
	x, err := DecodeIndex(data, salt, &Header{Log: salt.Log(), ID: w.ID, Base: w.Base}, end)
	if err != nil {
		t.Fatal(err)
	}
	return w, x, AppendIndex(nil, salt, &x)
}

func snapshotVector(t *testing.T, v *fileVector, salt Salt, data []byte) (want, got any, again []byte) {
	asOf, body, err := DecodeSnapshot(data, salt)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(v.u64(t, "as_of"), unhex(t, v.text(t, "body"))), fmt.Sprint(uint64(asOf), body), AppendSnapshot(nil, salt, asOf, body)
}

func streamVector(t *testing.T, v *fileVector, salt Salt, data []byte) (want, got any, again []byte) {
	asOf, body, err := readStreamed(data, salt)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(v.u64(t, "as_of"), unhex(t, v.text(t, "body"))), fmt.Sprint(uint64(asOf), body), streamed(salt, asOf, body)
}

func TestDirectoryNamesAreThePublishedOnes(t *testing.T) {
	for _, v := range loadVectors(t).Names {
		k := Key{v.Tenant, v.Namespace, v.Name, v.Shard}
		inc := id.Incarnation(number(t, v.Incarnation))
		if got := DirName(&k, inc); got != v.Dir {
			t.Errorf("%+v is %s, want %s", k, got, v.Dir)
		}
		hash, gotInc, ok := ParseDirName(v.Dir)
		if !ok || fmt.Sprintf("%016x", hash) != v.Hash || gotInc != inc {
			t.Errorf("%s parses to %016x %x %v", v.Dir, hash, uint64(gotInc), ok)
		}
		for _, kind := range LogKinds() {
			if got := NameHash(hash, kind); got != number(t, v.NameHashes[kind.String()]) {
				t.Errorf("%s: name hash for %s is %d", v.Dir, kind, got)
			}
		}
	}
}

func TestOnlyNamesAsTheyAreWrittenAreParsed(t *testing.T) {
	for _, name := range []string{"", "log", "acme_default_orders_0-0d3aed4b998d2798", "a-0D3AED4B998D2798-0000000000000001", "a-0d3aed4b998d279 -0000000000000001",
		"a-0d3aed4b998d2798_0000000000000001", "a-0d3aed4b998d2798-+000000000000001", "0d3aed4b998d2798-0000000000000001"} {
		if _, _, ok := ParseDirName(name); ok {
			t.Errorf("%q passes for a directory name", name)
		}
	}
	for _, name := range []string{"7.log", "0000000000000000007.log", "00000000000000000007.index", "0000000000000000000x.log", "99999999999999999999.log", "+0000000000000000007.log", ".log"} {
		if n, ok := ParseFileName(name); ok { // B14
			t.Errorf("%q passes for segment %d", name, n)
		}
	}
	if n, ok := ParseFileName(FileName(1<<64 - 1)); !ok || n != 1<<64-1 {
		t.Errorf("the greatest id is read as %d, %v", n, ok)
	}
	if n, ok := ParseIndexName(IndexName(7)); !ok || n != 7 {
		t.Errorf("index 7 is read as %d, %v", n, ok)
	}
}

func TestScanReadsASegmentThatAnotherProgramWrote(t *testing.T) {
	v := loadVectors(t).Segment
	data := unhex(t, v.Hex)
	h, err := DecodeHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	var bases []string
	got, err := Scan(bytes.NewReader(data), int64(len(data)), &h, func(_ int64, b *BatchHeader) error {
		bases = append(bases, b.Base.String())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Sealed || got.Batches != v.Batches || got.Next.String() != v.End || strings.Join(bases, ",") != strings.Join(v.Bases, ",") {
		t.Errorf("the scan found %+v and the batches %v", got, bases)
	}
}
