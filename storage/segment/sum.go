package segment

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/felixd/felixd/wire/id"
)

// be is the byte order of every file of a log.
var be = binary.BigEndian

// Sum is the checksum of every file of a log: CRC-32C (Castagnoli), as in RFC 3720 section 12.1. MakeTable computes the table once
// for the whole program and finds the instruction of the processor.
func Sum(p []byte) uint32 { return Extend(0, p) }

// Extend continues a checksum: Extend(Sum(a), b) is Sum of a followed by b.
func Extend(sum uint32, p []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), p)
}

// Salt binds checksums to one log: bytes of another log that turn up where they don't belong fail them, although they are whole.
// The zero Salt is that of the log without an id, which never exists.
type Salt struct {
	log id.LogID
	sum uint32 // over the log's id
}

// SaltOf is the salt of a log.
func SaltOf(log id.LogID) Salt { return Salt{log: log, sum: Sum(log[:])} }

// Log is the id the salt was made of.
func (s Salt) Log() id.LogID { return s.log }

// Apply turns a checksum of a body into the one that is stored, and back.
func (s Salt) Apply(sum uint32) uint32 { return sum ^ s.sum }

// over is the checksum of a structure: over the log's id and then its bytes.
func (s Salt) over(p []byte) uint32 { return Extend(s.sum, p) }
