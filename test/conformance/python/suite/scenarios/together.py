"""One connection doing everything at once."""

from __future__ import annotations

from suite import placement
from suite.checks import equal, raises, true
from suite.records import UNREAD, expect, expect_silence, next_record, payload, publish_all
from suite.runner import scenario
from suite.scenarios.caching import Cache


@scenario(seconds=120)
async def everything_at_once(stage, client):
    """Keyed and unkeyed publishers, three kinds of reader, cache callers and refusals share one connection."""
    single, spread = stage.stream(1), stage.stream(4)
    cache = Cache(stage, client, stage.cache(4))
    count = max(8, stage.sizes.records // 10)
    jobs = [
        *await _unkeyed(stage, client, single, count),
        *await _keyed(stage, client, spread, count),
        *(_cache_caller(cache, number) for number in range(8)),
        _refused(stage, client),
        _churn(stage, client, single),
    ]
    await stage.surface.gather(*jobs)
    return f"{len(jobs)} jobs"


async def _unkeyed(stage, client, stream: str, count: int):
    """A publisher and two readers of everything it publishes."""
    windows = [stage.surface.window(UNREAD) for _ in range(2)]
    handles = [await client.subscribe(stage.tenant, stage.namespace, stream) for _ in windows]
    bodies = [payload("unkeyed", number) for number in range(count)]

    async def write():
        for body in bodies:
            for window in windows:
                await window.take()
            await publish_all(stage, client, stream, [body])

    def reader(handle, window):
        async def read():
            await expect(stage, handle, stream, bodies, window)
            await expect_silence(handle, "unkeyed")

        return read

    return [write, *(reader(handle, window) for handle, window in zip(handles, windows))]


async def _keyed(stage, client, stream: str, count: int):
    """A publisher per shard of one key each, and one reader of all shards."""
    shards = 4
    windows = [stage.surface.window(UNREAD // 2) for _ in range(shards)]
    handle = await client.subscribe_sharded(stage.tenant, stage.namespace, stream)

    def writer(shard):
        key = placement.keys_for(shard, shards, 1)[0]

        async def write():
            for number in range(count // shards):
                await windows[shard].take()
                await publish_all(stage, client, stream, [payload(f"s{shard}", number)], key=key)

        return write

    async def read():
        got = [0] * shards
        for _ in range(count // shards * shards):
            record = await next_record(handle, f"sharded records, so far {got}")
            true(isinstance(record, stage.felix.ShardRecord), f"expected a record, got {record!r}")
            await windows[record.shard].give()
            equal(record.event.payload, payload(f"s{record.shard}", got[record.shard]), "sharded record")
            got[record.shard] += 1
        await expect_silence(handle, "keyed")

    return [read, *(writer(shard) for shard in range(shards))]


def _cache_caller(cache: Cache, number: int):
    async def work():
        for turn in range(50):
            key, value = f"own/{number}/{turn}", b"%d" % turn
            await cache.put(key, value, ttl=60.0)
            equal(await cache.get(key), value, f"get {key}")
            equal(await cache.delete(key), value, f"delete {key}")
            equal(await cache.get(key), None, f"get {key} after its delete")

    return work


def _refused(stage, client):
    """Refusals between the others' requests must not touch them."""
    unknown = Cache(stage, client, "conformance-none")

    async def work():
        for _ in range(20):
            call = client.publish(stage.tenant, stage.namespace, "conformance-none", b"x")
            await raises(stage.felix.NotFoundError, call, "publish to an unknown stream")
            await raises(stage.felix.NotFoundError, unknown.get("k"), "get in an unknown cache")
            call = client.publish(stage.tenant, "restricted", "anything", b"x")
            await raises(stage.felix.AuthError, call, "forbidden publish", code="forbidden")

    return work


def _churn(stage, client, stream: str):
    """Readers that come and go."""

    async def work():
        for _ in range(20):
            handle = await client.subscribe(stage.tenant, stage.namespace, stream)
            equal(await client.stream_shards(stage.tenant, stage.namespace, stream), 1, "shards")
            await handle.close()

    return work
