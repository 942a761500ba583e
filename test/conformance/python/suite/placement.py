"""Which shard a key belongs to: an implementation of its own, so that it can disagree with the broker.

64-bit FNV-1a over the key, a finaliser that spreads the low bits, modulo the number of shards.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1


def fnv1a(key: bytes) -> int:
    """64-bit FNV-1a of key."""
    value = 0xCBF29CE484222325
    for byte in key:
        value = ((value ^ byte) * 0x100000001B3) & _MASK
    return value


def finalise(value: int) -> int:
    """Spread every bit of value over the whole word."""
    value ^= value >> 30
    value = (value * 0xBF58476D1CE4E5B9) & _MASK
    value ^= value >> 27
    value = (value * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def shard_of(key: bytes | None, shards: int) -> int:
    """Shard of key on a stream of that width; no key is shard 0, an empty key is hashed."""
    if key is None or shards <= 1:
        return 0
    return finalise(fnv1a(key)) % shards


def keys_for(shard: int, shards: int, count: int) -> list[bytes]:
    """The first `count` keys of the form key-<n> that belong to shard."""
    found: list[bytes] = []
    number = 0
    while len(found) < count:
        key = b"key-%d" % number
        if shard_of(key, shards) == shard:
            found.append(key)
        number += 1
    return found


# (key, finalised hash, shard of 3, of 4, of 12): fixed points of the routing rule.
VECTORS = (
    (b"", 0xF52A15E9A9B5E89B, 0, 3, 3),
    (b"a", 0x02C0BDBF481420F8, 1, 0, 4),
    (b"k0", 0x43DB55D3AC266E8E, 0, 2, 6),
    (b"k1", 0x1F015D6AF2B2EEC6, 1, 2, 10),
    (b"user-42", 0x7A1596F0E94B5793, 1, 3, 7),
    (b"order-1001", 0x8BFDE3BB44719A1C, 2, 0, 8),
    (b"customer-0", 0xE0EF692B167733D8, 2, 0, 8),
    (b"customer-1", 0x2CB00644B7AE349B, 0, 3, 3),
    (b"customer-2", 0xFF5F031331EA7506, 1, 2, 10),
    (b"customer-4", 0x6518DB128DE4D1DA, 0, 2, 6),
    (b"customer-6", 0x0668B23287AAD594, 2, 0, 8),
    (b"\x00", 0x25FC6DD36CE04B20, 1, 0, 4),
    (b"\x00\xff", 0xA70BEE94C6C8447B, 1, 3, 7),
    ("cl\u00e9".encode(), 0x36E74085969A31B4, 1, 0, 4),
    (b"sessions/abc", 0xD601F6BF3F82AA52, 2, 2, 2),
)
