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
	// Version is what this package writes. A field that an older reader must not lose raises it. Files of versions from firstVersion
	// on are read; the first write after that makes them files of this one.
	Version = 2
	// firstVersion had no logs of caches.
	firstVersion = 1
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

// content is the catalog inside. C is cache, and model.Cache in the first version.
type content[C any] struct {
	Epoch      string            `json:"epoch"`
	Seq        uint64            `json:"seq"`
	Tenants    []model.Tenant    `json:"tenants"`
	Namespaces []model.Namespace `json:"namespaces"`
	Streams    []stream          `json:"streams"`
	Caches     []C               `json:"caches"`
}

// stream is a stream with what its record does not say in JSON.
type stream struct {
	Definition model.Stream `json:"definition"`
	Logs       []byte       `json:"logs,omitempty"` // model.Stream.Logs
}

// cache is the same for a cache.
type cache struct {
	Definition model.Cache `json:"definition"`
	Logs       []byte      `json:"logs,omitempty"` // model.Cache.Logs
}

func castagnoli(b []byte) string {
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return hex.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// Encode renders a catalog as a file. It fails only on one that takes more than BytesMax.
func Encode(c store.Catalog) ([]byte, error) {
	in := content[cache]{Epoch: c.Epoch, Seq: c.Seq, Tenants: c.Tenants, Namespaces: c.Namespaces, Streams: make([]stream, len(c.Streams)), Caches: make([]cache, len(c.Caches))}
	for i, s := range c.Streams {
		in.Streams[i] = stream{Definition: s, Logs: []byte(s.Logs)}
	}
	for i, x := range c.Caches {
		in.Caches[i] = cache{Definition: x, Logs: []byte(x.Logs)}
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

// Decode reads a file. Errors: *VersionError for one of a version that it does not know, *DamageError for everything else that Encode
// does not write, and in earlier versions did not.
func Decode(file []byte) (store.Catalog, error) {
	var e envelope
	if err := strict(file, &e); err != nil {
		return store.Catalog{}, damaged("it is no catalog: %v", err)
	}
	if e.Version < firstVersion || e.Version > Version {
		return store.Catalog{}, &VersionError{Found: e.Version}
	}
	if sum := castagnoli(e.Catalog); sum != e.CRC32C {
		return store.Catalog{}, damaged("its checksum is %s, and it says %.16q", sum, e.CRC32C)
	}
	if !bytes.Equal(file, seal(e.Version, e.CRC32C, e.Catalog)) {
		return store.Catalog{}, damaged("there is something around the catalog that does not belong there")
	}
	c, err := inside(e)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return store.Catalog{}, damaged("its content: %v", err)
	}
	return c, nil
}

// inside reads the content of a version that is known.
func inside(e envelope) (store.Catalog, error) {
	if e.Version == firstVersion {
		return catalogOf(e.Catalog, func(c model.Cache) model.Cache { return c })
	}
	return catalogOf(e.Catalog, func(c cache) model.Cache {
		c.Definition.Logs = string(c.Logs)
		return c.Definition
	})
}

// catalogOf reads a content; record makes the record of one of its caches.
func catalogOf[C any](text []byte, record func(C) model.Cache) (store.Catalog, error) {
	var in content[C]
	if err := strict(text, &in); err != nil {
		return store.Catalog{}, err
	}
	c := store.Catalog{Epoch: in.Epoch, Seq: in.Seq, Tenants: in.Tenants, Namespaces: in.Namespaces}
	for _, s := range in.Streams {
		s.Definition.Logs = string(s.Logs)
		c.Streams = append(c.Streams, s.Definition)
	}
	for _, x := range in.Caches {
		c.Caches = append(c.Caches, record(x))
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
