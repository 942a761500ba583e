"""Where keyed records land."""

from __future__ import annotations

from suite import placement
from suite.checks import equal, true
from suite.records import expect_silence, next_record
from suite.runner import scenario


@scenario()
async def keys_land_where_the_rule_says(stage, client):
    """Published fixed points and a few hundred other keys, on streams of three widths."""
    keys = [vector[0] for vector in placement.VECTORS]
    keys += [b"key-%d" % number for number in range(100)]
    keys += [bytes([number]) * (1 + number % 17) for number in range(0, 256, 5)]
    keys = list(dict.fromkeys(keys))
    for shards in (3, 4, 12):
        await _place(stage, client, shards, keys)
    return f"{len(keys)} keys on 3, 4 and 12 shards"


async def _place(stage, client, shards: int, keys: list[bytes]) -> None:
    stream = stage.stream(shards)
    handle = await client.subscribe_sharded(stage.tenant, stage.namespace, stream)
    for number, key in enumerate(keys):
        await client.publish(stage.tenant, stage.namespace, stream, b"%d" % number, key=key)
        record = await next_record(handle, f"record of key {key!r}")
        true(isinstance(record, stage.felix.ShardRecord), f"expected a record, got {record!r}")
        equal(record.event.payload, b"%d" % number, f"record of key {key!r}")
        equal(record.shard, placement.shard_of(key, shards), f"shard of key {key!r} of {shards}")
    await expect_silence(handle, "placement")
    await handle.close()
