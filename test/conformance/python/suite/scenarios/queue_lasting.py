"""What groups keep when their broker is killed or stopped and started again."""

from __future__ import annotations

import secrets
import time

from suite import placement
from suite.calling import refused
from suite.checks import equal, raises, true
from suite.group import PATIENCE, Group, begin, bodies, nudge, restart
from suite.records import payload
from suite.runner import scenario
from suite.scenarios.queue_failing import give_up, settings

ROUNDS = 3
IN_HAND = 1_000  # records


@scenario(own_broker=True, seconds=120.0)
async def queue_survives_restarts(stage, client):
    """What was acked never comes again, in whatever order it was; what was claimed does, counted, and old nacks miss it."""
    daemon, own = stage.apart()
    felix, group = stage.felix, await begin(own, await own.connect())
    offsets = await group.publish(bodies(24))
    held, open_ = await group.take(offsets, 1, "first deliveries"), list(offsets)
    for number, end in enumerate((daemon.kill, daemon.stop, daemon.kill)):
        acked = open_[1::3] if number else open_[1::2]
        for offset in acked:
            await group.ack(offset)
        open_ = [offset for offset in open_ if offset not in acked]
        await restart(group, end, daemon.start)
        late = [record for record in held if record.offset in open_]
        held = await group.take_each(open_, number + 2, f"what was open at restart {number}")
        await group.expect_nothing(f"more than what was open at restart {number}")
        for record in late:
            call = group.nack(record)
            await raises(felix.FelixError, call, "nack of a delivery from before", code="stale_claim", retry="fatal")
    for offset in open_:
        await group.ack(offset)
    await restart(group, daemon.kill, daemon.start)
    new = await group.publish([b"new"], at_least_once=True)
    await group.take(new, 1, "a queue that was finished before the last restart")
    return f"{len(offsets) - len(open_)} acked above the position"


@scenario(own_broker=True, seconds=120.0)
async def queue_acks_that_were_answered_last(stage, client):
    """A kill right after the answer of an ack: that record does not come again, however often."""
    daemon, own = stage.apart()
    group = await begin(own, await own.connect())
    offsets = await group.publish(bodies(40))
    await group.take(offsets, 1, "first deliveries", max_records=40)
    left = list(offsets)
    for number in range(ROUNDS):
        for place in (7, 3, 5):
            await group.ack(left.pop(place))
        await restart(group, daemon.kill, daemon.start)
        came = []
        while records := await group.poll(max_records=32):
            came += records
        equal([record.offset for record in came], left, f"what came after kill {number}")
        true(all(record.attempts >= 2 for record in came), f"attempts after kill {number}")


@scenario(own_broker=True, seconds=120.0)
async def queue_work_in_hand_comes_back(stage, client):
    """Everything is in hand when the broker is killed: all of it comes again at once, as second deliveries (QUE-10)."""
    daemon, own = stage.apart()
    group = await begin(own, await own.connect())
    many = [group.by(await own.connect()) for _ in range(8)]
    offsets = sorted(sum(await own.surface.gather(*((lambda each=each: each.publish(bodies(IN_HAND // 8))) for each in many)), []))
    taken = []
    while records := await group.poll(max_records=300):
        taken += records
    equal([(record.offset, record.attempts) for record in taken], [(offset, 1) for offset in offsets], "first deliveries")
    await group.kept(offsets[0] - 1)  # nobody waits for numbers of deliveries: the last ones may be lost otherwise
    await restart(group, daemon.kill, daemon.start)
    await group.take_each(offsets, 2, "what was in hand")
    await group.expect_nothing("more than what was in hand")
    return f"{len(offsets)} records"


@scenario(own_broker=True, seconds=120.0)
async def queue_restarts_are_no_failures(stage, client):
    """A record that is in hand at every restart is never given up for that, and no answer tells more attempts than there may be."""
    limit = 2
    daemon, own = stage.apart(settings(visibility=60.0, max_attempts=limit))
    group = await begin(own, await own.connect())
    (offset,) = await group.publish([b"job"])
    await group.take([offset], 1, "the first delivery")
    for end in (daemon.kill, daemon.kill, daemon.stop, daemon.kill):
        await restart(group, end, daemon.start)
        (record,) = await group.take([offset], limit, "after a restart")
    equal(await group.dead_letters(), [], "dead letters after restarts")
    await group.nack(record)
    (record,) = await group.take([offset], limit, "after a failure")
    await group.nack(record)
    equal(await group.dead_letters(), [offset], "dead letters after two failures")


@scenario(own_broker=True, seconds=120.0)
async def queue_dead_letters_survive(stage, client):
    """Dead letters, redrives and discards are kept: a redriven record is owed until it is finished or fails again."""
    limit = 2
    daemon, own = stage.apart(settings(visibility=60.0, max_attempts=limit))
    group = await begin(own, await own.connect())
    offsets = await group.publish(bodies(6))
    await give_up(group, offsets, limit)
    await group.kept(offsets[0] - 1)
    for end in (daemon.kill, daemon.stop):
        await restart(group, end, daemon.start)
        equal(await group.dead_letters(), offsets, "dead letters after a restart")
        await group.expect_nothing("what was given up")
    await group.discard(offsets[0])
    for offset in offsets[1:4]:
        await group.redrive(offset)
    await restart(group, daemon.kill, daemon.start)
    equal(await group.dead_letters(), offsets[4:], "dead letters after discard and redrive")
    taken = []
    while records := await group.poll():
        taken += records
    equal([(record.offset, record.attempts) for record in taken], [(offset, 1) for offset in offsets[1:4]], "what was redriven")
    await group.ack(offsets[1])
    await restart(group, daemon.kill, daemon.start)
    records = await group.take_each(offsets[2:4], 2, "what was redriven and not finished")
    await group.ack(offsets[2])
    await group.nack(records[1])
    (record,) = await group.poll(wait=5.0)
    await group.nack(record)
    equal(await group.dead_letters(), offsets[3:], "dead letters after one failed again")
    await group.kept(offsets[0] - 1)
    await restart(group, daemon.kill, daemon.start)
    equal(await group.dead_letters(), offsets[3:], "dead letters in the end")
    await group.expect_nothing("a queue that is finished")


@scenario(own_broker=True, seconds=120.0)
async def queue_many_groups_survive(stage, client):
    """Positions of several groups on several shards are kept apart."""
    shards, names = 4, ("a", "b", "a" * 60)
    daemon, own = stage.apart()
    user = await own.connect()
    stream = own.stream(shards, durable=True)
    groups = [Group(own, user, stream, name, shard) for name in names for shard in range(shards)]
    for group in groups:
        await group.past_the_probe()
    want: dict[int, list[int]] = {}
    for shard in range(shards):
        key = placement.keys_for(shard, shards, 1)[0]
        want[shard] = [await user.publish(own.tenant, own.namespace, stream, payload("g", each), key=key) for each in range(12)]
    done = {}
    for number, group in enumerate(groups):
        if number:
            await group.take(want[group.shard][:number], 1, f"first of {group.name}", max_records=number)
        for offset in want[group.shard][:number]:
            await group.ack(offset)
        done[group] = number
    await restart(groups[secrets.randbelow(len(groups))], daemon.kill, daemon.start)
    for group in groups:
        await group.again()
        rest = want[group.shard][done[group] :]
        if rest:
            await group.take(rest, 1, f"{group.name} on shard {group.shard} after a restart")
        await group.expect_nothing(f"{group.name} on shard {group.shard}: more than the rest")


@scenario(own_broker=True, seconds=120.0)
async def queue_polls_end_with_their_broker(stage, client):
    """A poll that waits when its broker stops or is killed ends; the next record comes soon after the next start, once (QUE-04)."""
    daemon, own = stage.apart()
    felix, group = stage.felix, await begin(own, await own.connect())
    waiter, calls = group.by(await own.connect()), await own.connect()
    for end in (daemon.stop, daemon.kill):
        came: list = []

        async def waiting() -> None:
            while not came:
                try:
                    came.extend(await waiter.poll(wait=20.0))
                except felix.FelixError as error:
                    refused(felix, error)  # raises what the end of a broker does not explain
                    await own.surface.sleep(0.02)

        async def ending() -> float:
            await own.surface.sleep(0.5)
            await restart(group.by(calls), end, daemon.start)
            await nudge(waiter)
            await group.again()
            (offset,) = await group.publish([b"job"], at_least_once=True)
            published = time.monotonic()
            while not came and time.monotonic() < published + PATIENCE:
                await own.surface.sleep(0.01)
            true(came, f"record {offset} did not come within {PATIENCE:.0f} s")
            equal([(record.offset, record.attempts) for record in came], [(offset, 1)], "the record after a start")
            return time.monotonic() - published

        _, took = await own.surface.gather(waiting, ending)
        true(took < 5.0, f"the record came {took:.1f} s after it was published")
        await group.ack(came[0].offset)
    await group.expect_nothing("a queue that is finished")
