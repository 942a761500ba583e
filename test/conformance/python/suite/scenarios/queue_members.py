"""Consumers with a name: what they hold, they can take back when they come again."""

from __future__ import annotations

from suite.checks import equal, raises
from suite.group import begin, bodies
from suite.runner import scenario


@scenario()
async def queue_reclaim(stage, client):
    """A consumer that comes back takes what it held, first, alone and counted; others cannot have it meanwhile."""
    felix, group = stage.felix, await begin(stage, client)
    offsets = await group.publish(bodies(8))
    before = await group.take(offsets[:3], 1, "what ann holds", max_records=3, consumer="ann")
    await group.take(offsets[3:5], 1, "what bob holds", max_records=2, consumer="bob")
    await group.take(offsets[5:6], 1, "what somebody holds", max_records=1)
    other, ann = group.by(await stage.connect()), group.by(await stage.connect())
    await other.take(offsets[6:7], 1, "a newer connection without a name", max_records=1)
    again = await ann.take([offsets[0]], 2, "what ann takes back first", consumer="ann", reclaim=True)
    await other.take(offsets[7:], 1, "what others get meanwhile", consumer="bob")
    again += await ann.take_each(offsets[1:3], 2, "the rest that ann takes back", consumer="ann", reclaim=True)
    await ann.expect_nothing("ann has everything back")
    for late in before:
        await raises(felix.FelixError, group.nack(late), "nack of what was taken back", code="stale_claim", retry="fatal")
    for record in again:
        await ann.ack(record.offset)
    for offset in offsets[3:]:
        await group.ack(offset)
    await group.expect_nothing("a queue that is finished")


@scenario()
async def queue_reclaim_once(stage, client):
    """Only what older connections hold comes back, once for each connection, and only by the name that holds it."""
    group = await begin(stage, client)
    offsets = await group.publish(bodies(6))
    await group.take(offsets[:2], 1, "a first poll", max_records=2, consumer="ann", reclaim=True)
    await group.take(offsets[2:3], 1, "a second one, which takes nothing back", max_records=1, consumer="ann", reclaim=True)
    newer = group.by(await stage.connect())
    await newer.take(offsets[3:4], 1, "without asking for it", max_records=1, consumer="ann")
    await newer.take(offsets[4:5], 1, "by another name", max_records=1, consumer="bob", reclaim=True)
    newest = group.by(await stage.connect())
    await newest.take_each(offsets[:4], 2, "all that ann held", max_records=32, consumer="ann", reclaim=True)
    await group.take(offsets[5:], 1, "an older connection takes nothing back", consumer="ann", reclaim=True)
    await newest.expect_nothing("everything is held")
    equal(await group.dead_letters(), [], "dead letters")


@scenario()
async def queue_reclaim_gives_up(stage, client):
    """Taking back is a failure like any other: a record that kills its worker each time becomes a dead letter."""
    group = await begin(stage, client)
    (offset,) = await group.publish([b"poison"])
    await group.take([offset], 1, "the first delivery", consumer="ann")
    for attempts in range(2, 6):
        group = group.by(await stage.connect())
        await group.take([offset], attempts, f"delivery {attempts}", consumer="ann", reclaim=True)
    group = group.by(await stage.connect())
    await group.expect_nothing("after five deliveries")
    await group.by(await stage.connect()).poll(consumer="ann", reclaim=True)
    equal(await group.dead_letters(), [offset], "dead letters")
