#!/usr/bin/env python3
"""Writes vectors.json: the files of a log, byte by byte, for implementations in any language.

The bytes are built here with struct.pack from the layouts in the package's documentation, with a CRC-32C and an FNV-1a of
their own, and never by the Go code that is tested against them. Run it in this directory: python3 vectors.py > vectors.json

Conventions of the file: byte strings are hex; 64-bit integers are decimal strings. "files" decode to "fields" and encode
back to the same bytes. "names" are directory names. "segment" is a whole sealed segment with what is in it.
"""
import json
import struct
import sys

M64 = (1 << 64) - 1


def crc32c(data, crc=0):
    """Bit by bit, reflected polynomial 0x82F63B78; crc32c(b"123456789") is 0xE3069283 (RFC 3720, appendix B.4 has more)."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def fnv1a(data, h=0xCBF29CE484222325):
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & M64
    return h


LOG = bytes(range(16))
SALT = crc32c(LOG)


def key_bytes(tenant, namespace, name, shard):
    out = b""
    for part in (tenant, namespace, name):
        out += struct.pack(">Q", len(part.encode())) + part.encode()
    return out + struct.pack(">I", shard)


NAME_HASH = fnv1a(key_bytes("acme", "default", "orders", 0) + b"streams")


def header(base, created, segment):
    b = struct.pack(">IHH16sQQQQI", 0x464C5347, 1, 0, LOG, NAME_HASH, base, created, segment, 0)
    return b + struct.pack(">I", crc32c(b))


def batch(base, count, kind, generation, micros, body, producer=0, sequence=0, publisher=b"", stored=None):
    flags = 0 if stored is None else 1
    stored = body if stored is None else stored
    rest = struct.pack(">IIQIBBBBQQQQII", len(stored), crc32c(publisher + stored) ^ SALT, base, count, kind, flags,
                       len(publisher), 0, generation, micros, producer, sequence, len(body), crc32c(body) ^ SALT)
    return struct.pack(">II", 0x464C4254, crc32c(LOG + rest)) + rest + publisher + stored


def footer(data, batches, end, least, greatest, segment):
    rest = struct.pack(">QIIQQQQQ", len(data), crc32c(data), batches, end, least, greatest, segment, 0)
    return struct.pack(">II", 0x464C5345, crc32c(LOG + rest)) + rest


def summed(b):
    return b + struct.pack(">I", crc32c(LOG + b))


def mark(segment, synced, oldest, base, flags=0, total=0):
    return summed(struct.pack(">IHHQQQQI", 0x464C534D, 1, flags, segment, synced, oldest, base, total))


def replica(generation, commit, flags=0, lost=()):
    head = struct.pack(">IHHQQI", 0x464C5253, 2 if lost else 1, flags, generation, commit, len(lost))
    return summed(head + b"".join(struct.pack(">QQQ", *e) for e in lost))


def meta(kind, incarnation, generation, name_hash, created):
    return summed(struct.pack(">IHBB16sQQQQI", 0x464C4D54, 1, kind, 0, LOG, incarnation, generation, name_hash, created, 0))


def index(segment, base, entries):
    head = struct.pack(">IHH16sQQI", 0x464C5349, 1, 0, LOG, segment, base, len(entries))
    body = b"".join(struct.pack(">QQQ", *e) for e in entries)
    return head + struct.pack(">I", crc32c(LOG + head + body)) + body


def snapshot(as_of, body):
    head = struct.pack(">IHHQQI", 0x464C534E, 1, 0, as_of, len(body), 0)
    return head + struct.pack(">I", crc32c(LOG + head + body)) + body


def streamed(as_of, body):
    """One chunk at the most: those of more are 64 KiB each."""
    head = struct.pack(">IHHI", 0x464C5358, 1, 0, 0)
    total = crc32c(LOG + head)
    data = head + struct.pack(">I", total)
    if body:
        total = crc32c(struct.pack(">I", len(body)) + body, total)
        data += struct.pack(">II", len(body), total) + body
    return data + summed(struct.pack(">IHHQQQI", 0x464C5845, 1, 0, as_of, len(body), 0, total))


def region(*payloads):
    return b"".join(struct.pack(">I", len(p)) + p for p in payloads)


def file(name, layout, data, **fields):
    return {"name": name, "layout": layout, "hex": data.hex(),
            "fields": {k: str(v) if isinstance(v, int) and not isinstance(v, bool) else v for k, v in fields.items()}}


def files():
    two = region(b"hi", b"")
    yield file("segment header", "header", header(1, 2, 3), base=1, created=2, segment=3, name_hash=NAME_HASH)
    yield file("segment header at the ends", "header", header(M64, M64, M64), base=M64, created=M64, segment=M64, name_hash=NAME_HASH)
    yield file("two records", "batch", batch(7, 2, 1, 5, 9, two), base=7, count=2, kind=1, generation=5, micros=9, producer=0,
               sequence=0, publisher="", compressed=False, body=two.hex(), stored=two.hex())
    yield file("records of a producer, with publisher", "batch", batch(9, 1, 1, 5, 10, region(b"x"), 11, 12, b"al"), base=9,
               count=1, kind=1, generation=5, micros=10, producer=11, sequence=12, publisher="al", compressed=False,
               body=region(b"x").hex(), stored=region(b"x").hex())
    yield file("compressed", "batch", batch(10, 1, 1, 5, 10, region(b"y" * 9), stored=b"zstd frame"), base=10, count=1, kind=1,
               generation=5, micros=10, producer=0, sequence=0, publisher="", compressed=True, body=region(b"y" * 9).hex(),
               stored=b"zstd frame".hex())
    yield file("generation start without a body", "batch", batch(11, 1, 2, 6, 11, b""), base=11, count=1, kind=2, generation=6,
               micros=11, producer=0, sequence=0, publisher="", compressed=False, body="", stored="")
    yield file("footer of a segment without batches", "footer", footer(header(1, 2, 3), 0, 1, 0, 0, 3), length=64,
               sum=crc32c(header(1, 2, 3)), batches=0, end=1, least=0, greatest=0, segment=3)
    yield file("mark", "mark", mark(2, 4096, 1, 77), segment=2, synced=4096, oldest=1, base=77, reset=False, sum=0, summed=False)
    yield file("mark with the sum of the synced bytes", "mark", mark(2, 4096, 1, 77, 2, 0xFEDCBA98), segment=2, synced=4096, oldest=1, base=77,
               reset=False, sum=0xFEDCBA98, summed=True)
    yield file("mark of a reset", "mark", mark(9, 64, 9, 1000, 1), segment=9, synced=64, oldest=9, base=1000, reset=True, sum=0, summed=False)
    yield file("replica", "replica", replica(7, 100), generation=7, commit=100, held=False)
    yield file("replica that holds", "replica", replica(M64, M64, 1), generation=M64, commit=M64, held=True)
    yield file("replica of a log that was shorter", "replica", replica(7, 0, lost=[(5, 60, 9), (M64 - 1, M64, M64)]), generation=7, commit=0, held=False,
               lost=f"5,60,9;{M64 - 1},{M64},{M64}")
    yield file("log.meta", "meta", meta(1, 0xABC, 4, NAME_HASH, 5), kind=1, incarnation=0xABC, generation=4, name_hash=NAME_HASH, created=5)
    yield file("index", "index", index(3, 1, [(1, 64, 9), (5, 8192, 10)]), segment=3, base=1, entries="1,64,9;5,8192,10")
    yield file("index without entries", "index", index(3, 1, []), segment=3, base=1, entries="")
    yield file("snapshot", "snapshot", snapshot(42, b"state"), as_of=42, body=b"state".hex())
    yield file("snapshot of nothing", "snapshot", snapshot(0, b""), as_of=0, body="")
    yield file("streamed snapshot", "stream", streamed(42, b"state"), as_of=42, body=b"state".hex())
    yield file("streamed snapshot of nothing", "stream", streamed(M64, b""), as_of=M64, body="")


def names():
    for tenant, namespace, name, shard, incarnation, readable in (
            ("acme", "default", "orders", 0, 1, "acme_default_orders_0"),
            ("acme", "default", "orders", 1, M64, "acme_default_orders_1"),
            ("t1", "ns", "a.b", 0, 0xABC, "t1_ns_a_b_0"),
            ("t1", "ns", "a_b", 0, 0xABC, "t1_ns_a_b_0"),
            ("t" * 40, "..", "caf\u00e9/x", 7, 2, "t" * 32 + "____caf___x_7")):
        h = fnv1a(key_bytes(tenant, namespace, name, shard))
        yield {"tenant": tenant, "namespace": namespace, "name": name, "shard": shard, "incarnation": str(incarnation), "hash": "%016x" % h,
               "dir": "%s-%016x-%016x" % (readable, h, incarnation),
               "name_hashes": {k: str(fnv1a(k.encode(), h)) for k in ("streams", "caches", "counters", "groups", "dead-letters")}}


def segment():
    data = header(100, 1, 4)
    data += batch(100, 2, 1, 5, 20, region(b"hi", b""))
    data += batch(102, 1, 2, 6, 10, b"")
    data += batch(103, 3, 1, 6, 30, region(b"a", b"b", b"c"), 1, 2, b"al")
    return {"hex": (data + footer(data, 3, 106, 10, 30, 4)).hex(), "batches": 3, "end": "106", "bases": ["100", "102", "103"]}


def main():
    assert crc32c(b"123456789") == 0xE3069283
    json.dump({"log": LOG.hex(), "salt": str(SALT), "check": str(crc32c(b"123456789")), "files": list(files()), "names": list(names()), "segment": segment()},
              sys.stdout, indent=1, ensure_ascii=True)
    print()


main()
