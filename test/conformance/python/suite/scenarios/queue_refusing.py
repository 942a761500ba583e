"""What groups refuse, and what they skip."""

from __future__ import annotations

import time

from suite.checks import Mismatch, equal, raises, true
from suite.group import Group, begin, bodies
from suite.runner import scenario
from suite.scenarios.durable import LARGE, TRIMMED_WITHIN
from suite.scenarios.refusing import FORBIDDEN_NAMESPACE, FORBIDDEN_TENANT

LONGEST = 128  # bytes of the name of a consumer
LONGEST_GROUP = 255  # bytes of the name of a group


def calls(client, scope: tuple, record):
    """Every call of a group, with what it is called."""
    return (
        ("poll", client.group_poll(*scope, wait=5.0)),
        ("ack", client.group_ack(*scope, 1)),
        ("nack", client.group_nack(*scope, record)),
        ("dead_letters", client.group_dead_letters(*scope)),
        ("discard", client.group_discard(*scope, 1)),
        ("redrive", client.group_redrive(*scope, 1)),
    )


@scenario()
async def queues_that_are_refused(stage, client):
    """Streams without a log, unknown ones and shards, other namespaces and tenants: typed refusals, and the client goes on."""
    felix, group = stage.felix, await begin(stage, client)
    await group.publish([b"job"])
    (record,) = await group.take_first("a record")
    ephemeral = stage.stream(1)
    own = (stage.tenant, stage.namespace)
    for what, scope, kind, code, retry in (
        ("an ephemeral stream", (*own, ephemeral, 0, "g"), felix.FelixError, "invalid_request", "fatal"),
        ("an unknown stream", (*own, ephemeral + "-none", 0, "g"), felix.NotFoundError, "not_found", "retry_after"),
        ("an unknown shard", (*own, group.stream, 1, "g"), felix.FelixError, "invalid_request", "fatal"),
        ("another namespace", (stage.tenant, FORBIDDEN_NAMESPACE, "s", 0, "g"), felix.AuthError, "forbidden", "fatal"),
        ("another tenant", (FORBIDDEN_TENANT, stage.namespace, "s", 0, "g"), felix.AuthError, "forbidden", "fatal"),
    ):
        for name, call in calls(client, scope, record):
            await raises(kind, call, f"{name} of {what}", code=code, retry=retry)
    for number in range(40):
        await group.expect_nothing(f"poll {number} after refusals")
    await group.ack(record.offset)


@scenario()
async def queue_requests_that_are_refused(stage, client):
    """Names of consumers that are none, polls for nothing, nacks of no record: refused, and nothing was handed out."""
    felix, group = stage.felix, await begin(stage, client)
    offsets = await group.publish(bodies(4))
    refused = {"code": "invalid_request", "retry": "fatal"}
    for name in ("", "x" * (LONGEST + 1), "\u00e9" * (LONGEST // 2) + "x"):
        await raises(felix.FelixError, group.poll(consumer=name), f"a consumer of {len(name.encode())} bytes", **refused)
    await raises(felix.FelixError, group.poll(max_records=0), "a poll for no records", **refused)
    for number, name in enumerate(("x", "y" * LONGEST, "\u00e9" * (LONGEST // 2))):
        await group.take([offsets[number]], 1, f"a consumer of {len(name.encode())} bytes", max_records=1, consumer=name)
    await raises(TypeError, group.nack(offsets[0]), "a nack that names no delivery")
    await group.take([offsets[3]], 1, "the last record")


@scenario()
async def queue_names(stage, client):
    """A group has a name of 1 to 255 bytes, whatever they are, and each name is a group of its own."""
    felix, group = stage.felix, await begin(stage, client)
    (offset,) = await group.publish([b"job"])
    refused = {"code": "invalid_request", "retry": "fatal"}
    for name in ("", "x" * (LONGEST_GROUP + 1)):
        await raises(felix.FelixError, group.called(name).poll(), f"a group of {len(name)} bytes", **refused)
        await raises(felix.FelixError, group.called(name).dead_letters(), f"a group of {len(name)} bytes", **refused)
    for name in ("x" * LONGEST_GROUP, "a/b", "../x", "*", " ", "\n", "Workers", "workers ", "\u00e9", "e\u0301"):
        each = group.called(name)
        await each.past_the_probe()
        await each.take([offset], 1, f"the group {name!r}")
        await each.expect_nothing(f"the group {name!r}, which has claimed everything")
    await group.take([offset], 1, "the first group")


@scenario()
async def queue_of_a_stream_that_was_deleted(stage, client):
    """A poll that waits ends with its stream; a stream of the same name begins without groups."""
    felix, group = stage.felix, await begin(stage, client)
    await group.publish(bodies(5))
    await group.take_first("a record that stays claimed")
    for offset in (2, 3):
        await group.poll(max_records=1)
        await group.ack(offset)
    await group.poll()
    deleted: list[float] = []

    async def waiting() -> None:
        call = group.poll(wait=20.0)
        await raises(felix.NotFoundError, call, "a poll of a stream that is deleted", code="not_found", within=30.0)
        deleted.append(time.monotonic())

    async def deleting() -> float:
        await stage.surface.sleep(0.5)
        started = time.monotonic()
        await stage.surface.aside(lambda: stage.delete_stream(group.stream))
        return started

    _, started = await stage.surface.gather(waiting, deleting)
    true(deleted[0] - started < 5.0, f"the poll ended {deleted[0] - started:.1f} s after the deletion began")
    await raises(felix.NotFoundError, group.poll(wait=5.0), "a poll of a deleted stream", code="not_found")
    stage.stream(1, durable=True, name=group.stream)
    await group.past_the_probe()
    await group.expect_nothing("the group of a new stream of that name")
    equal(await group.dead_letters(), [], "its dead letters")


@scenario()
async def queue_settlements_that_are_refused(stage, client):
    """Of a group that is not there, and of records that were never given up."""
    felix, group = stage.felix, await begin(stage, client)
    offsets = await group.publish(bodies(2))
    none = group.called("none")
    await raises(felix.FelixError, none.ack(offsets[0]), "ack for a group that is not there", code="stale_claim")
    equal(await none.dead_letters(), [], "dead letters of a group that is not there")
    for what, each, offset in (("a group that is not there", none, offsets[0]), ("a record in the queue", group, offsets[1])):
        call = each.redrive(offset)
        await raises(felix.FelixError, call, f"redrive for {what}", code="invalid_request", retry="fatal")
        await each.discard(offset)
    await group.take(offsets, 1, "records that were discarded without being dead letters")


@scenario(seconds=120.0)
async def queue_skips_what_retention_removed(stage, client):
    """Retention wins over a group: it goes on at the oldest record kept, and says how many offsets it passed over."""
    stream = stage.stream(1, durable=True, retention_bytes=LARGE)
    group = Group(stage, client, stream)
    await group.past_the_probe()
    body, written, waited = b"x" * LARGE, 0, 0.0
    (first,) = await group.publish([body])
    watcher = group.called("watcher")
    while True:
        written = (await group.publish([body] * 16))[-1]
        (oldest,) = await watcher.poll(max_records=1)
        if oldest.offset > first:
            break
        await watcher.nack(oldest)
        if waited >= TRIMMED_WITHIN:
            raise Mismatch(f"offset {first} is still there, {written - first} records of {LARGE} bytes later")
        await stage.surface.sleep(0.5)
        waited += 0.5
    records = await group.poll(max_records=1)
    equal(len(records), 1, "records after what was removed")
    (record,) = records
    true(first < record.offset <= written, f"the group goes on at {record.offset}, of {first} to {written}")
    equal(record.offset - record.skipped_before, first, f"the first of {record.skipped_before} offsets before {record.offset}")
    await group.ack(record.offset)
    return f"{record.skipped_before} records were skipped"
