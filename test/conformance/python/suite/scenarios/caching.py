"""The cache: values, misses, deletes, TTLs, many callers, unknown caches."""

from __future__ import annotations

import time

from suite.checks import Mismatch, equal, raises, true
from suite.runner import scenario

ENTRIES = 1_000
CALLERS = 64
SHORT_LIVED = 200  # entries with a short TTL
TTL = 0.5  # seconds
MARGIN = 0.1  # seconds after a TTL until the entry must be gone
LONGEST = 65_535  # bytes of a key


class Cache:
    """One cache seen through one client."""

    def __init__(self, stage, client, name: str):
        self._scope = (stage.tenant, stage.namespace, name)
        self._client = client

    async def put(self, key: str, value: bytes, **options) -> None:
        await self._client.cache_put(*self._scope, key, value, **options)

    async def get(self, key: str):
        return await self._client.cache_get(*self._scope, key)

    async def delete(self, key: str):
        return await self._client.cache_delete(*self._scope, key)


@scenario()
async def cache_thousand(stage, client):
    """1,000 puts, gets, misses and deletes over four shards; half of the entries carry a long TTL."""
    cache = Cache(stage, client, stage.cache(4))
    values = {f"key/{number}": b"value-%d" % number * (number % 7) for number in range(ENTRIES)}
    for number, (key, value) in enumerate(values.items()):
        await cache.put(key, value, **({"ttl": 300.0} if number % 2 else {}))
    for key, value in values.items():
        equal(await cache.get(key), value, f"get {key}")
    for number in range(ENTRIES):
        equal(await cache.get(f"absent/{number}"), None, f"get absent/{number}")
    for key, value in values.items():
        equal(await cache.delete(key), value, f"delete {key} returns what it removed")
    for key in values:
        equal(await cache.get(key), None, f"get {key} after its delete")
    equal(await cache.delete("key/0"), None, "second delete")
    return f"{ENTRIES} puts, gets, misses, deletes"


@scenario()
async def cache_overwrites(stage, client):
    """The last put wins; caches and keys do not mix; any bytes and any text are fine."""
    first, second = (Cache(stage, client, stage.cache(shards)) for shards in (1, 4))
    for key in ("k", " ", "a/b:c*d", "cl\u00e9", "\U0001f4e6", "x" * 200):
        for value in (b"", b"\x00", bytes(range(256)), b"v" * 70_000):
            await first.put(key, value)
            equal(await first.get(key), value, f"get {key!r} after a put of {len(value)} bytes")
        equal(await second.get(key), None, f"get {key!r} of another cache")
    await first.put("big", b"b" * (1 << 20))
    equal(await first.get("big"), b"b" * (1 << 20), "get of 1 MiB")


@scenario()
async def cache_ttl(stage, client):
    """An entry lives as long as its TTL and no longer; a put without a TTL makes it permanent again."""
    cache = Cache(stage, client, stage.cache(4))
    await cache.put("long", b"l", ttl=300.0)
    await cache.put("kept", b"k", ttl=TTL)
    await cache.put("kept", b"K")
    await cache.put("shortened", b"s", ttl=300.0)
    await cache.put("shortened", b"S", ttl=TTL)
    alive = await _short_lived(stage, cache)
    equal(await cache.get("shortened"), None, "an entry whose TTL was shortened")
    equal(await cache.get("long"), b"l", "an entry with a long TTL")
    equal(await cache.get("kept"), b"K", "an entry put again without a TTL")
    equal(await cache.delete("short/0"), None, "delete of an expired entry")
    await cache.put("short/0", b"again")
    equal(await cache.get("short/0"), b"again", "an entry put again after it expired")
    return f"{SHORT_LIVED} entries expired, {alive} read before"


async def _short_lived(stage, cache: Cache) -> int:
    """Put entries with a TTL, read them late in it and after it; how many were surely read before it ended.

    A machine that stands still for the whole TTL proves nothing, so the pass is repeated until one entry was.
    """
    for _ in range(10):
        began = time.monotonic()
        for number in range(SHORT_LIVED):
            await cache.put(f"short/{number}", b"s", ttl=TTL)
        ended = time.monotonic()
        await _sleep_until(stage, began + 0.6 * TTL)
        alive = 0
        for number in range(SHORT_LIVED):
            value = await cache.get(f"short/{number}")
            if time.monotonic() < began + TTL:
                equal(value, b"s", f"get short/{number} within its TTL")
                alive += 1
        await _sleep_until(stage, ended + TTL + MARGIN)
        for number in range(SHORT_LIVED):
            equal(await cache.get(f"short/{number}"), None, f"get short/{number} after its TTL")
        if alive:
            return alive
    raise Mismatch(f"no entry could be read within {TTL} s of its put: this machine is too slow to tell")


async def _sleep_until(stage, moment: float) -> None:
    await stage.surface.sleep(max(0.0, moment - time.monotonic()))


@scenario()
async def cache_many_callers(stage, client):
    """64 callers at once, each with keys of its own and one key they all write."""
    cache = Cache(stage, client, stage.cache(4))
    shared = {b"from-%d" % caller for caller in range(CALLERS)}

    def caller(number):
        async def work():
            for turn in range(20):
                key, value = f"own/{number}/{turn}", b"%d-%d" % (number, turn)
                equal(await cache.get(key), None, f"get {key} before its put")
                await cache.put(key, value)
                await cache.put("shared", b"from-%d" % number)
                equal(await cache.get(key), value, f"get {key}")
                seen = await cache.get("shared")
                true(seen in shared, f"shared key holds {seen!r}, which nobody wrote")
                equal(await cache.delete(key), value, f"delete {key}")

        return work

    await stage.surface.gather(*(caller(number) for number in range(CALLERS)))
    return f"{CALLERS} callers, {CALLERS * 120} calls"


@scenario()
async def cache_in_memory(stage, client):
    """A cache that was created to be in memory answers the same."""
    cache = Cache(stage, client, stage.cache(4, in_memory=True))
    for number in range(200):
        key, value = f"key/{number}", b"v" * (number * 41)
        equal(await cache.get(key), None, f"get {key} before its put")
        await cache.put(key, value, **({"ttl": 300.0} if number % 2 else {}))
        equal(await cache.get(key), value, f"get {key}")
    await cache.put("short", b"s", ttl=0.05)
    await stage.surface.sleep(0.05 + MARGIN)
    equal(await cache.get("short"), None, "get of an entry whose time is up")
    for number in range(200):
        equal(await cache.delete(f"key/{number}"), b"v" * (number * 41), f"delete key/{number}")
        equal(await cache.delete(f"key/{number}"), None, f"second delete of key/{number}")


@scenario()
async def cache_key_lengths(stage, client):
    """Keys of up to 65,535 bytes of UTF-8 are fine; one byte more is refused, and the next calls work."""
    felix, cache = stage.felix, Cache(stage, client, stage.cache(4))
    for key in ("k", "k" * LONGEST, "\u20ac" * (LONGEST // 3)):
        await cache.put(key, b"v")
        equal((await cache.get(key), await cache.delete(key)), (b"v", b"v"), f"a key of {len(key.encode())} bytes")
    long = "k" * (LONGEST + 1)
    for what, call in (("put", cache.put(long, b"v")), ("get", cache.get(long)), ("delete", cache.delete(long))):
        await raises(felix.FelixError, call, f"{what} of a key that is too long")
    for number in range(40):
        await cache.put(f"k{number}", b"v")
        equal(await cache.get(f"k{number}"), b"v", f"call {number} after a refusal")


@scenario()
async def unknown_cache(stage, client):
    """A refusal costs the client no stream: more calls than it has cache streams work afterwards."""
    felix, name = stage.felix, stage.cache(1)
    cache, unknown = Cache(stage, client, name), Cache(stage, client, name + "-none")
    for _ in range(3):
        for what, call in (
            ("get", unknown.get("k")),
            ("put", unknown.put("k", b"v")),
            ("delete", unknown.delete("k")),
        ):
            await raises(felix.NotFoundError, call, f"{what} in an unknown cache", code="not_found", retry="retry_after")
        for number in range(40):
            await cache.put(f"k{number}", b"v")
            equal(await cache.get(f"k{number}"), b"v", f"call {number} after a refusal")
