"""Subscribing: where reading begins, several readers, sharded readers, look-ups."""

from __future__ import annotations

from suite import placement
from suite.checks import Mismatch, equal, raises, true
from suite.records import PATIENCE, check_event, expect, expect_silence, next_record, payload, publish_all
from suite.runner import scenario
from suite.stage import PROBE
from suite.surfaces import closed


def series(tag: str, first: int, count: int) -> list[bytes]:
    """Payloads first .. first+count-1 of a series."""
    return [payload(tag, number) for number in range(first, first + count)]


@scenario()
async def latest_sees_only_what_follows(stage, client):
    """Without a start, or with latest, nothing published before is delivered."""
    stream = stage.stream(1)
    await publish_all(stage, client, stream, series("old", 0, 50))
    plain = await client.subscribe(stage.tenant, stage.namespace, stream)
    named = await client.subscribe(stage.tenant, stage.namespace, stream, start="latest")
    after = series("new", 0, 50)
    await publish_all(stage, client, stream, after)
    for handle in (plain, named):
        await expect(stage, handle, stream, after)
        await expect_silence(handle, "latest")


@scenario()
async def earliest_joins_history_and_live(stage, client):
    """What the broker still holds, then what follows, without a gap or a repetition."""
    stream = stage.stream(1)
    before, after = series("join", 0, 100), series("join", 100, 20)
    await publish_all(stage, client, stream, before)
    handle = await client.subscribe(stage.tenant, stage.namespace, stream, start="earliest")
    await publish_all(stage, client, stream, after)
    first = (await next_record(handle, "earliest")).payload
    while first == PROBE:
        first = (await next_record(handle, "earliest")).payload
    if first not in before:
        raise Mismatch(f"earliest begins at {first!r}, want a record published before the subscription")
    held = before[before.index(first) :]
    await expect(stage, handle, stream, (held + after)[1:])
    await expect_silence(handle, "earliest")
    return f"history held: {len(held)} of {len(before)}"


@scenario()
async def offset_start_is_refused(stage, client):
    """An ephemeral stream has no offsets to start at: a typed refusal, and the client goes on."""
    stream, felix = stage.stream(1), stage.felix
    for start in (0, 1, 10**6):
        call = client.subscribe(stage.tenant, stage.namespace, stream, start=start)
        error = await raises(felix.FelixError, call, f"subscribe with start={start}", within=10.0)
        typed = isinstance(error, felix.CursorError) or (error.code == "invalid_request" and error.retry == "fatal")
        true(typed, f"subscribe with start={start}: {error!r} code={error.code!r}, want CursorError or invalid_request")
    handle = await client.subscribe(stage.tenant, stage.namespace, stream)
    await publish_all(stage, client, stream, series("on", 0, 3))
    await expect(stage, handle, stream, series("on", 0, 3))


@scenario()
async def several_readers(stage, client):
    """Two subscriptions of one client and one of another each get everything; closing one disturbs none."""
    stream = stage.stream(1)
    other = await stage.connect()
    handles = [await each.subscribe(stage.tenant, stage.namespace, stream) for each in (client, client, other)]
    await publish_all(stage, client, stream, series("three", 0, 60))
    for handle in handles:
        await expect(stage, handle, stream, series("three", 0, 60))
    await handles[0].close()
    true(await closed(handles[0]), "a closed subscription says so")
    for number in range(200):
        await publish_all(stage, client, stream, series("two", number, 1))
        for handle in handles[1:]:
            await expect(stage, handle, stream, series("two", number, 1))
    for handle in handles[1:]:
        await expect_silence(handle, "several readers")


@scenario()
async def slow_reader_loses_nothing_within_its_queue(stage, client):
    """Records that wait while nobody reads are all there, in order, when the reader comes."""
    stream = stage.stream(1)
    handle = await client.subscribe(stage.tenant, stage.namespace, stream)
    for block in range(8):
        bodies = series("slow", block * 100, 100)
        await publish_all(stage, client, stream, bodies)
        await stage.surface.sleep(0.05)
        await expect(stage, handle, stream, bodies)
    await expect_silence(handle, "slow reader")


@scenario()
async def sharded_reader(stage, client):
    """One record on each of four shards comes back with its shard; unkeyed records are shard 0."""
    shards = 4
    stream, felix = stage.stream(shards), stage.felix
    handle = await client.subscribe_sharded(stage.tenant, stage.namespace, stream)
    equal(handle.shards, shards, "shards of the subscription")
    want = {(shard, payload(f"s{shard}", 0)) for shard in range(shards)} | {(0, payload("unkeyed", 0))}
    for shard in range(shards):
        key = placement.keys_for(shard, shards, 1)[0]
        await publish_all(stage, client, stream, [payload(f"s{shard}", 0)], key=key)
    await publish_all(stage, client, stream, [payload("unkeyed", 0)])
    got = set()
    for index in range(len(want)):
        record = await next_record(handle, f"sharded record {index}")
        true(isinstance(record, felix.ShardRecord), f"expected a record, got {record!r}")
        check_event(stage, record.event, stream)
        got.add((record.shard, record.event.payload))
    equal(got, want, "records per shard")
    await expect_silence(handle, "sharded reader")
    await handle.close()


@scenario()
async def look_ups(stage, client):
    """Widths of known streams, 0 for an unknown one, refusals of unknown names."""
    felix = stage.felix
    for shards in (1, 4):
        stream = stage.stream(shards)
        equal(await client.stream_shards(stage.tenant, stage.namespace, stream), shards, f"shards of {stream}")
    unknown = stream + "-none"
    equal(await client.stream_shards(stage.tenant, stage.namespace, unknown), 0, "shards of an unknown stream")
    call = client.subscribe(stage.tenant, stage.namespace, unknown)
    await raises(felix.NotFoundError, call, "subscribe to an unknown stream", code="not_found", within=PATIENCE)
    call = client.subscribe_sharded(stage.tenant, stage.namespace, unknown)
    await raises(felix.FelixError, call, "sharded subscribe to an unknown stream", within=PATIENCE)
