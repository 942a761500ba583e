"""Publishing: acknowledgements, order, sizes."""

from __future__ import annotations

from suite import placement
from suite.checks import equal, raises, true
from suite.records import UNREAD, check_event, expect, expect_silence, next_record, payload, publish_all
from suite.runner import scenario

BLOCK = 64  # records under one acknowledgement
SIZES = (0, 1, 1452, 4096, 65_535, 65_536, 65_537, 1 << 20)  # bytes of a record


@scenario()
async def acknowledgements(stage, client):
    """Every ack mode, keyed and not: accepted, without an offset on an ephemeral stream, delivered in order."""
    stream = stage.stream(1)
    handle = await client.subscribe(stage.tenant, stage.namespace, stream)
    modes = [{"ack": ack} for ack in ("none", "per_message", "per_batch")]
    modes += [{"ack": ack, "key": b"k0"} for ack in ("none", "per_message", "per_batch")]
    modes.append({"at_least_once": True})
    for number, mode in enumerate(modes):
        body = payload("ack", number)
        await publish_all(stage, client, stream, [body], **mode)
        await expect(stage, handle, stream, [body])
    await expect_silence(handle, "acknowledgements")


@scenario()
async def unknown_stream(stage, client):
    """NotFoundError at once, and the client goes on."""
    stream, felix = stage.stream(1), stage.felix
    refused = {"code": "not_found", "retry": "retry_after", "within": 2.0}
    for options in ({}, {"key": b"k0"}, {"ack": "per_batch"}):
        call = client.publish(stage.tenant, stage.namespace, stream + "-none", b"x", **options)
        await raises(felix.NotFoundError, call, f"publish {options} to an unknown stream", **refused)
    await client.publish(stage.tenant, stage.namespace, stream + "-none", b"x", ack="none")
    await publish_all(stage, client, stream, [b"still here"])


async def _flow(stage, client, write) -> str:
    """Run write(stream, window, body) for each record while a subscriber reads all of them in order."""
    stream = stage.stream(1)
    window = stage.surface.window(UNREAD)
    handle = await client.subscribe(stage.tenant, stage.namespace, stream)
    bodies = [payload("flow", number) for number in range(stage.sizes.records)]

    async def writer():
        for number, body in enumerate(bodies):
            await window.take()
            await write(stream, number, body)

    async def reader():
        await expect(stage, handle, stream, bodies, window)
        await expect_silence(handle, "flow")

    await stage.surface.gather(writer, reader)
    return f"{stage.sizes.records} records"


@scenario(seconds=120)
async def single_records_in_order(stage, client):
    """Each record waits for its own acknowledgement."""

    async def write(stream, number, body):
        await publish_all(stage, client, stream, [body], ack="per_message")

    return await _flow(stage, client, write)


@scenario(seconds=120)
async def batched_records_in_order(stage, client):
    """Blocks of records under way together, the last of each block acknowledged for all before it."""
    last = stage.sizes.records - 1

    async def write(stream, number, body):
        ack = "per_batch" if number % BLOCK == BLOCK - 1 or number == last else "none"
        await publish_all(stage, client, stream, [body], ack=ack)

    return await _flow(stage, client, write)


@scenario(seconds=120)
async def keyed_records_in_order(stage, client):
    """Four publishers at once, one per shard and eight keys each: every shard in order, every key where it belongs."""
    shards = 4
    stream = stage.stream(shards)
    each = max(1, stage.sizes.records // shards)
    windows = [stage.surface.window(UNREAD // 2) for _ in range(shards)]
    handle = await client.subscribe_sharded(stage.tenant, stage.namespace, stream)

    def writer(shard):
        keys = placement.keys_for(shard, shards, 8)

        async def write():
            for number in range(each):
                await windows[shard].take()
                body, key = payload(f"s{shard}", number), keys[number % len(keys)]
                await publish_all(stage, client, stream, [body], key=key)

        return write

    async def reader():
        got = [0] * shards
        for index in range(each * shards):
            record = await next_record(handle, f"record {index} of {stream}, per shard {got}")
            true(isinstance(record, stage.felix.ShardRecord), f"expected a record, got {record!r}")
            shard = record.shard
            await windows[shard].give()
            equal(record.event.payload, payload(f"s{shard}", got[shard]), f"record {got[shard]} of shard {shard}")
            check_event(stage, record.event, stream)
            got[shard] += 1
        await expect_silence(handle, "keyed")
        equal(got, [each] * shards, "records per shard")

    await stage.surface.gather(reader, *(writer(shard) for shard in range(shards)))
    await handle.close()
    return f"{each * shards} records over {shards} shards"


@scenario()
async def sizes(stage, client):
    """Bodies around the broker's cutting and buffering limits arrive unchanged, empty ones too."""
    stream = stage.stream(1)
    handle = await client.subscribe(stage.tenant, stage.namespace, stream)
    bodies = [bytes(range(256)) * (size // 256) + b"." * (size % 256) for size in SIZES]
    for body in bodies:
        await publish_all(stage, client, stream, [body])
        await expect(stage, handle, stream, [body])
    await expect_silence(handle, "sizes")
    return f"0 to {SIZES[-1]} bytes"

