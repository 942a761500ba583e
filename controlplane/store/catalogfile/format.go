package catalogfile

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

const (
	// Version is what this package writes, and all that it reads. A field that an older reader must not lose raises it.
	Version = 1
	// BytesMax bounds the file. The largest catalog of a memory store, 150,000 records of at most 1.2 KiB, is below it with as
	// much again for the logs of eight million shards.
	BytesMax = 512 << 20
)

// envelope is the file: one line of JSON. The checksum is the CRC-32C of the bytes of the catalog as they stand there.
type envelope struct {
	Version uint32          `json:"version"`
	CRC32C  string          `json:"crc32c"`
	Catalog json.RawMessage `json:"catalog"`
}

// content is the catalog inside.
type content struct {
	Epoch      string            `json:"epoch"`
	Seq        uint64            `json:"seq"`
	Tenants    []model.Tenant    `json:"tenants"`
	Namespaces []model.Namespace `json:"namespaces"`
	Streams    []stream          `json:"streams"`
	Caches     []model.Cache     `json:"caches"`
}

// stream is a stream with what its record does not say in JSON.
type stream struct {
	Definition model.Stream `json:"definition"`
	Logs       []byte       `json:"logs,omitempty"` // model.Stream.Logs
}

func castagnoli(b []byte) string {
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return hex.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// Encode renders a catalog as a file. It fails only on one that takes more than BytesMax.
func Encode(c store.Catalog) ([]byte, error) {
	in := content{Epoch: c.Epoch, Seq: c.Seq, Tenants: c.Tenants, Namespaces: c.Namespaces, Streams: make([]stream, len(c.Streams)), Caches: c.Caches}
	for i, s := range c.Streams {
		in.Streams[i] = stream{Definition: s, Logs: []byte(s.Logs)}
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the catalog: %w", err)
	}
	file := seal(Version, castagnoli(body), body)
	if len(file) > BytesMax {
		return nil, fmt.Errorf("encode the catalog: it takes %d bytes, more than the %d that its file may have; delete streams or caches that nobody needs", len(file), BytesMax)
	}
	return file, nil
}

// seal puts the envelope around a body. There is one way to write an envelope, so that any other byte in it is damage.
func seal(version uint32, sum string, body []byte) []byte {
	file := fmt.Appendf(make([]byte, 0, len(body)+64), `{"version":%d,"crc32c":%q,"catalog":`, version, sum)
	return append(append(file, body...), "}\n"...)
}

// Decode reads a file. Errors: *VersionError for one of another version, *DamageError for everything else that Encode does not
// write.
func Decode(file []byte) (store.Catalog, error) {
	var e envelope
	if err := strict(file, &e); err != nil {
		return store.Catalog{}, damaged("it is no catalog: %v", err)
	}
	if e.Version != Version {
		return store.Catalog{}, &VersionError{Found: e.Version}
	}
	if sum := castagnoli(e.Catalog); sum != e.CRC32C {
		return store.Catalog{}, damaged("its checksum is %s, and it says %.16q", sum, e.CRC32C)
	}
	if !bytes.Equal(file, seal(e.Version, e.CRC32C, e.Catalog)) {
		return store.Catalog{}, damaged("there is something around the catalog that does not belong there")
	}
	var in content
	if err := strict(e.Catalog, &in); err != nil {
		return store.Catalog{}, damaged("its content: %v", err)
	}
	c := store.Catalog{Epoch: in.Epoch, Seq: in.Seq, Tenants: in.Tenants, Namespaces: in.Namespaces, Caches: in.Caches}
	for _, s := range in.Streams {
		s.Definition.Logs = string(s.Logs)
		c.Streams = append(c.Streams, s.Definition)
	}
	if err := c.Validate(); err != nil {
		return store.Catalog{}, damaged("its content: %v", err)
	}
	return c, nil
}

// strict decodes one JSON value and refuses fields that it does not know.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("something follows it")
	}
	return nil
}
