"""Consumer groups: order, sharing, settling, waiting, sizes."""

from __future__ import annotations

import time

from suite import placement
from suite.checks import equal, raises, true
from suite.group import PROMPT, Group, begin, bodies
from suite.runner import scenario

RECORDS = 300
WORKERS = 8
MOST = 1000  # records of one poll
LARGE = 1 << 20  # bytes
ROOM = 4 << 20  # bytes of payload in the answer of one poll


@scenario()
async def queue_in_order(stage, client):
    """New records come in the order of their offsets, as first deliveries, unchanged; two groups do not see each other."""
    group = await begin(stage, client)
    jobs = bodies(RECORDS)
    offsets = await group.publish(jobs)
    for name in ("workers", "others"):
        each, taken = group.called(name), []
        if name == "others":
            await each.past_the_probe()
        while records := await each.poll(max_records=37):
            taken += records
            for record in records:
                await each.ack(record.offset)
        equal([record.offset for record in taken], offsets, f"offsets for {name}")
        equal([record.payload for record in taken], jobs, f"payloads for {name}")
        equal({(record.attempts, record.skipped_before) for record in taken}, {(1, 0)}, f"attempts and holes for {name}")
    equal(await group.dead_letters(), [], "dead letters")


@scenario()
async def queue_over_shards(stage, client):
    """Each shard is a queue of its own: its records in order, its claims, its position."""
    shards, each = 4, 40
    stream = stage.stream(shards, durable=True)
    groups = [Group(stage, client, stream, shard=shard) for shard in range(shards)]
    want = []
    for group in groups:
        await group.past_the_probe()
        key, jobs = placement.keys_for(group.shard, shards, 1)[0], bodies(each)
        want.append([await client.publish(stage.tenant, stage.namespace, stream, job, key=key) for job in jobs])
    for group in groups:
        await group.take(want[group.shard][:30], 1, f"shard {group.shard}", max_records=30)
    for group in groups:
        for offset in want[group.shard][:30]:
            await group.ack(offset)
        records = await group.take(want[group.shard][30:], 1, f"the rest of shard {group.shard}")
        equal([record.payload for record in records], bodies(each)[30:], f"payloads of shard {group.shard}")
    for group in groups:
        await group.expect_nothing(f"shard {group.shard}, of which everything is claimed")


@scenario()
async def queue_shared(stage, client):
    """Workers on connections of their own share a queue: each record goes to one of them, once."""
    group = await begin(stage, client)
    offsets = await group.publish(bodies(RECORDS))

    async def work() -> list[int]:
        mine, taken = group.by(await stage.connect()), []
        while records := await mine.poll(max_records=7, wait=0.2):
            for record in records:
                equal(record.attempts, 1, f"attempts of {record.offset}")
                taken.append(record.offset)
                await mine.ack(record.offset)
        return taken

    taken = await stage.surface.gather(*(work for _ in range(WORKERS)))
    equal(sorted(sum(taken, [])), offsets, "what all workers took")
    for one in taken:
        equal(one, sorted(one), "what one worker took, in order")
    return f"{WORKERS} workers took {min(map(len, taken))} to {max(map(len, taken))}"


@scenario()
async def queue_waits(stage, client):
    """An empty poll takes as long as it may wait; a publish or a nack answers one at once, and only one of two."""
    group = await begin(stage, client)
    for wait in (0.0, 0.3, 1.0):
        started = time.monotonic()
        await group.expect_nothing(f"a poll that waits {wait} s", wait=wait)
        took = time.monotonic() - started
        true(wait <= took < wait + PROMPT, f"a poll that may wait {wait} s took {took:.2f} s")
    equal([record.attempts for record in await _woken(stage, group, lambda: group.publish([b"new"]))], [1], "after a publish")
    (held,) = await _woken(stage, group, lambda: group.publish([b"newer"]))
    equal([record.attempts for record in await _woken(stage, group, lambda: group.nack(held))], [2], "after a nack")


async def _woken(stage, group: Group, wake) -> list:
    """Two polls wait; what wake does is answered to one of them, at once, and the other goes on waiting. Returns the record."""
    wait, ended = 2.5, []

    async def waiting() -> list:
        mine = group.by(await stage.connect())
        started = time.monotonic()
        records = await mine.poll(wait=wait)
        took = time.monotonic() - started
        if records:
            ended.append(time.monotonic())
        else:
            true(took >= wait, f"a poll that may wait {wait} s was answered empty after {took:.2f} s")
        return records

    async def waking() -> list:
        await stage.surface.sleep(0.7)
        started = time.monotonic()
        await wake()
        while not ended and time.monotonic() < started + wait:
            await stage.surface.sleep(0.005)
        true(ended and ended[0] - started < PROMPT, "a poll that waits is answered when there is something")
        return []

    answers = await stage.surface.gather(waiting, waiting, waking)
    records = sum(answers, [])
    equal(len(records), 1, "records for two polls that waited")
    return records


@scenario()
async def queue_nacks(stage, client):
    """A nack makes a record owed at once, before all new ones and alone; it hits its own delivery and no other."""
    felix, group = stage.felix, await begin(stage, client)
    offsets = await group.publish(bodies(12))
    first = await group.take(offsets[:6], 1, "first deliveries", max_records=6)
    for place in (4, 1):
        await group.nack(first[place])
    again = await group.take_each([offsets[1], offsets[4]], 2, "what was given back, lowest first", max_records=32)
    equal([record.payload for record in again], [first[1].payload, first[4].payload], "payloads of what came again")
    rest = await group.take(offsets[6:], 1, "new records after those")
    for late in (first[1], first[4]):
        await raises(felix.FelixError, group.nack(late), "nack of a delivery that ended", code="stale_claim", retry="fatal")
    for record in (first[0], first[2], first[3], first[5], *again, *rest):
        await group.ack(record.offset)
    for late in (*first, *again):
        await raises(felix.FelixError, group.nack(late), "nack of what is finished", code="stale_claim", retry="fatal")
    await group.expect_nothing("a queue of which everything is finished")


@scenario()
async def queue_acks(stage, client):
    """Acks in any order and more than once; what was not handed out or is not there yet is refused and comes all the same."""
    felix, group = stage.felix, await begin(stage, client)
    offsets = await group.publish(bodies(10))
    await group.take(offsets[:8], 1, "deliveries", max_records=8)
    other = group.by(await stage.connect())
    for turn in range(2):
        for offset in (offsets[5], offsets[3], offsets[0], offsets[4]):
            await (group if turn else other).ack(offset)
    await raises(felix.FelixError, group.ack(offsets[9]), "ack of what was not handed out", code="stale_claim", retry="retry")
    for offset in (offsets[9] + 1, offsets[9] + 1000, 2**63):
        await raises(felix.FelixError, group.ack(offset), f"ack of {offset}", code="invalid_request", retry="fatal")
    await group.take(offsets[8:], 1, "the rest")
    for offset in offsets:
        await group.ack(offset)
    late = await group.publish([b"late"])
    await group.take(late, 1, "a record at an offset that was acked before it was there")
    await group.ack(late[0])
    await group.expect_nothing("a queue of which everything is finished")


@scenario()
async def queue_sizes(stage, client):
    """Payloads of 0 bytes to 1 MiB come unchanged; a poll gives at most 1,000 records and about 4 MiB."""
    group = await begin(stage, client)
    sizes = [0, 1, 255, 1000, 65_536, 70_001, LARGE]
    jobs = [bytes(range(256)) * (size // 256) + b"x" * (size % 256) for size in sizes] + [b"y" * LARGE] * 9
    want = list(zip(await group.publish(jobs), jobs))
    while want:
        records = await group.poll(max_records=MOST)
        equal([(record.offset, record.payload) for record in records], want[: len(records)], "the next records")
        total = sum(len(record.payload) for record in records)
        true(records and total <= ROOM, f"{len(records)} records of {total} bytes in one answer, of {len(want)} that are left")
        if len(records) < len(want):
            true(total + LARGE > ROOM, f"only {total} bytes in one answer")
        for record in records:
            await group.ack(record.offset)
        want = want[len(records) :]
    await group.expect_nothing("a queue of which everything is finished")


@scenario()
async def queue_most_records(stage, client):
    """A poll that asks for more is given 1,000 records."""
    group = await begin(stage, client)

    async def publish() -> list[int]:
        return await group.by(await stage.connect()).publish(bodies((MOST + 200) // WORKERS))

    offsets = sorted(sum(await stage.surface.gather(*(publish for _ in range(WORKERS))), []))
    await group.take(offsets[:MOST], 1, "a poll for 5,000", max_records=5 * MOST)
    await group.take(offsets[MOST:], 1, "the rest", max_records=5 * MOST)
    for offset in offsets[::-1]:
        await group.ack(offset)
    await group.expect_nothing("a queue that was acked from its end")
