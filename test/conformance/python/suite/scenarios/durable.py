"""Durable streams: offsets, where reading begins, resuming, retention, commits."""

from __future__ import annotations

from suite import placement
from suite.checks import Mismatch, equal, raises, true
from suite.records import check_origin, expect_silence, next_record, payload
from suite.runner import scenario
from suite.stage import PROBE

LARGE = 64 * 1024  # bytes of a record that fills segments
TRIMMED_WITHIN = 30.0  # seconds until retention has removed what is over a stream's bound


async def publish_numbers(stage, client, stream: str, first: int, count: int, **options) -> list[int]:
    """Publish records first .. first+count-1 one after the other and return their offsets, which ascend."""
    offsets = []
    for number in range(first, first + count):
        body = payload("durable", number)
        offset = await client.publish(stage.tenant, stage.namespace, stream, body, **options)
        true(isinstance(offset, int), f"publish {number} to durable {stream}: offset {offset!r}, want a number")
        if offsets:
            true(offset > offsets[-1], f"publish {number}: offset {offset} after {offsets[-1]}")
        offsets.append(offset)
    return offsets


async def expect_at(stage, handle, stream: str, first: int, offsets) -> None:
    """Read exactly the records that begin with number `first`, at these offsets, with every hole announced."""
    previous = None
    for index, offset in enumerate(offsets):
        event = await next_record(handle, f"record {first + index} of {stream}")
        equal(event.payload, payload("durable", first + index), f"record {first + index} of {stream}")
        check_origin(stage, event, stream)
        equal(event.offset, offset, f"offset of record {first + index}")
        if previous is not None:
            equal(event.offset - event.skipped_before, previous + 1, f"offsets skipped before record {first + index}")
        previous = event.offset


@scenario()
async def durable_offsets(stage, client):
    """Acknowledgements and events name the same offsets, for single records, batches and any acknowledgement."""
    stream = stage.stream(1, durable=True)
    handle = await client.subscribe(stage.tenant, stage.namespace, stream)
    offsets = await publish_numbers(stage, client, stream, 0, 100)
    offsets += await publish_numbers(stage, client, stream, 100, 20, ack="per_batch")
    offsets += await publish_numbers(stage, client, stream, 120, 20, key=b"k0")
    offsets += await publish_numbers(stage, client, stream, 140, 20, at_least_once=True)
    await expect_at(stage, handle, stream, 0, offsets)
    equal(await client.publish(stage.tenant, stage.namespace, stream, payload("durable", 160), ack="none"), None, "ack none")
    event = await next_record(handle, "the record without an acknowledgement")
    equal(event.payload, payload("durable", 160), "the record without an acknowledgement")
    true(event.offset > offsets[-1], f"its offset {event.offset} after {offsets[-1]}")
    await expect_silence(handle, "durable offsets")


@scenario()
async def durable_starts(stage, client):
    """Latest, earliest and any offset: exactly the records from there, then what follows, without gap or repetition."""
    stream = stage.stream(1, durable=True)
    offsets = await publish_numbers(stage, client, stream, 0, 200)
    handles = []
    for first in (0, 1, 100, 199):
        start = offsets[first]
        handles.append((first, await client.subscribe(stage.tenant, stage.namespace, stream, start=start)))
    tail = await client.subscribe(stage.tenant, stage.namespace, stream, start=offsets[-1] + 1)
    handles += [(200, tail), (200, await client.subscribe(stage.tenant, stage.namespace, stream, start="latest"))]
    offsets += await publish_numbers(stage, client, stream, 200, 50)
    for first, handle in handles:
        await expect_at(stage, handle, stream, first, offsets[first:])
        await expect_silence(handle, f"start at record {first}")
    everything = await client.subscribe(stage.tenant, stage.namespace, stream, start="earliest")
    await next_record(everything, "the probe of a new stream")
    await expect_at(stage, everything, stream, 0, offsets)


@scenario()
async def durable_resume(stage, client):
    """A new client that begins after the last record handled by another goes on right there."""
    stream = stage.stream(1, durable=True)
    offsets = await publish_numbers(stage, client, stream, 0, 120)
    handled, start = 0, offsets[0]
    while handled < len(offsets):
        reader = await stage.connect()
        handle = await reader.subscribe(stage.tenant, stage.namespace, stream, start=start)
        upto = min(handled + 37, len(offsets))
        await expect_at(stage, handle, stream, handled, offsets[handled:upto])
        await handle.close()
        handled, start = upto, offsets[upto - 1] + 1
    handle = await client.subscribe(stage.tenant, stage.namespace, stream, start=start)
    await expect_silence(handle, "resume at the end")


@scenario()
async def durable_sharded_resume(stage, client):
    """The positions of a sharded reader, given back, lose and repeat nothing on any shard."""
    shards, each = 4, 30
    stream, felix = stage.stream(shards, durable=True), stage.felix
    handle = await client.subscribe_sharded(stage.tenant, stage.namespace, stream, start="latest")
    want = {}
    for shard in range(shards):
        key = placement.keys_for(shard, shards, 1)[0]
        want[shard] = await publish_numbers(stage, client, stream, 0, each, key=key)
    seen = {shard: [] for shard in range(shards)}

    async def read(source, count: int) -> None:
        while count > 0:
            record = await next_record(source, f"sharded record, {count} are left")
            true(isinstance(record, felix.ShardRecord), f"expected a record, got {record!r}")
            if record.event.payload == PROBE and record.shard in unread:
                unread.remove(record.shard)
                continue
            count -= 1
            equal(record.event.payload, payload("durable", len(seen[record.shard])), f"next record of shard {record.shard}")
            seen[record.shard].append(record.event.offset)

    unread: set[int] = set()  # shards that begin with the probe of a new stream
    await read(handle, shards * each // 2)
    resume = {shard: offsets[-1] for shard, offsets in seen.items() if offsets}
    await handle.close()
    other = await stage.connect()
    again = await other.subscribe_sharded(stage.tenant, stage.namespace, stream, start="earliest", resume=resume)
    unread.update(shard for shard, offsets in seen.items() if not offsets)
    await read(again, shards * each - shards * each // 2)
    equal(seen, want, "offsets of each shard")
    await expect_silence(again, "sharded resume")
    await again.close()


@scenario()
async def durable_future_offset_is_refused(stage, client):
    """An offset past the end is a CursorError, at once, and the client goes on."""
    stream, felix = stage.stream(1, durable=True), stage.felix
    last = (await publish_numbers(stage, client, stream, 0, 5))[-1]
    for start in (last + 2, last + 1000, 2**62):
        call = client.subscribe(stage.tenant, stage.namespace, stream, start=start)
        await raises(felix.CursorError, call, f"subscribe at {start}, {start - last - 1} past the end")
    handle = await client.subscribe(stage.tenant, stage.namespace, stream, start=last)
    await expect_at(stage, handle, stream, 4, [last])


@scenario(seconds=120.0)
async def durable_old_offset_is_refused(stage, client):
    """What retention removed is a CursorError, never another place; the oldest record kept can still be read."""
    stream, felix = stage.stream(1, durable=True, retention_bytes=LARGE), stage.felix
    body = b"x" * LARGE
    first = await client.publish(stage.tenant, stage.namespace, stream, body)
    written, waited = first, 0.0
    while True:
        for _ in range(16):
            written = await client.publish(stage.tenant, stage.namespace, stream, body)
        try:
            handle = await client.subscribe(stage.tenant, stage.namespace, stream, start=first)
            await handle.close()
        except felix.CursorError:
            break
        if waited >= TRIMMED_WITHIN:
            raise Mismatch(f"offset {first} is still there, {written - first} records of {LARGE} bytes later")
        await stage.surface.sleep(0.5)
        waited += 0.5
    handle = await client.subscribe(stage.tenant, stage.namespace, stream, start="earliest")
    event = await next_record(handle, "the oldest record kept")
    true(first < event.offset <= written, f"the oldest record kept is {event.offset}, of {first} to {written}")
    return f"{written - first} records written, oldest kept {event.offset - first}"


@scenario()
async def commit_and_state(stage, client):
    """A commit is one event and its state: the version of a key is the offset of its commit."""
    stream, felix = stage.stream(1, durable=True), stage.felix
    handle = await client.subscribe(stage.tenant, stage.namespace, stream)

    async def state(key: str):
        return await client.state_get(stage.tenant, stage.namespace, stream, b"entity", key)

    equal((await state("balance")).value, None, "a key that was never put")
    for round_number, value in enumerate((b"10", b"", b"\xff\x00")):
        event = payload("commit", round_number)
        ops = [felix.CommitOp.publish(stream, event), felix.CommitOp.put(stream, "balance", value)]
        receipt = await client.commit(stage.tenant, stage.namespace, b"entity", ops)
        found = await state("balance")
        equal((found.value, found.version), (value, receipt.offset), "value and version after the commit")
        true(found.as_of is not None and found.as_of >= receipt.offset, f"as of {found.as_of}, want {receipt.offset} or later")
        seen = await next_record(handle, "the event of the commit")
        equal((seen.payload, seen.offset), (event, receipt.offset), "the event of the commit")
    ops = [felix.CommitOp.publish(stream, b"gone"), felix.CommitOp.delete(stream, "balance")]
    await client.commit(stage.tenant, stage.namespace, b"entity", ops)
    equal((await state("balance")).value, None, "a key that was deleted")
    other = [felix.CommitOp.publish(stream, b"x"), felix.CommitOp.put(stream + "-other", "k", b"v")]
    await raises(felix.NotOnOwningShardError, client.commit(stage.tenant, stage.namespace, b"entity", other), "two streams")
    none = [felix.CommitOp.put(stream, "k", b"v")]
    await raises(felix.EventCountError, client.commit(stage.tenant, stage.namespace, b"entity", none), "no event")


@scenario()
async def commit_to_an_ephemeral_stream_is_refused(stage, client):
    """A stream without a log takes no commit and has no state: a typed refusal, and the client goes on."""
    stream, felix = stage.stream(1), stage.felix
    ops = [felix.CommitOp.publish(stream, b"x"), felix.CommitOp.put(stream, "k", b"v")]
    refused = {"code": "invalid_request", "retry": "fatal"}
    await raises(felix.FelixError, client.commit(stage.tenant, stage.namespace, b"e", ops), "commit", **refused)
    call = client.state_get(stage.tenant, stage.namespace, stream, b"e", "k")
    await raises(felix.FelixError, call, "state_get", **refused)
    equal(await client.publish(stage.tenant, stage.namespace, stream, b"on"), None, "a publish after that")
