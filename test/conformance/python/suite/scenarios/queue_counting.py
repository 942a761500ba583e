"""What a broker counts of its groups, and how it lets go of groups that nobody uses."""

from __future__ import annotations

import time

from suite import metrics
from suite.checks import equal, raises
from suite.group import begin, bodies
from suite.runner import scenario
from suite.scenarios.queue_failing import apart, settings

COUNTERS = ("delivered", "redelivered", "settled", "nacked", "lapsed", "reclaimed", "dead_lettered", "skipped", "polls_capped")
GAUGES = ("lag_records", "in_flight", "delayed", "owed", "dead_letters")
SHOWN_WITHIN = 5.0  # seconds until the numbers are those that were waited for


async def counted(stage) -> dict[str, float]:
    """The numbers of all groups of a broker, by the short names above."""
    values = await stage.surface.aside(lambda: metrics.plain(stage.dev))
    found = {name: values[f"felix_group_{name}_total"] for name in COUNTERS}
    found.update({name: values[f"felix_group_{name}"] for name in GAUGES})
    return {**found, "groups": values["felix_groups"]}


async def expect_counts(stage, what: str, **want: float) -> None:
    """Wait until these numbers are so, and all others 0."""
    full = {**dict.fromkeys((*COUNTERS, *GAUGES, "groups"), 0.0), **want}
    deadline = time.monotonic() + SHOWN_WITHIN
    while (got := await counted(stage)) != full and time.monotonic() < deadline:
        await stage.surface.sleep(0.02)
    equal({name: value for name, value in got.items() if value}, {name: value for name, value in full.items() if value}, what)


@scenario(own_broker=True)
async def queue_counts(stage, client):
    """Each thing that happens to a record is counted once, and what is in the queue is what the gauges say."""
    group, other = await apart(stage, visibility=1.5, backoff="0,60000", max_attempts=2, max_in_flight=8)
    own = group.stage
    counts = {"groups": 1.0, "delivered": 1.0, "settled": 1.0}  # the probe of the stream
    await expect_counts(own, "after the probe", **counts)
    offsets = await group.publish(bodies(10))
    first = await group.poll(max_records=10, consumer="ann")
    equal([record.offset for record in first], offsets[:8], "as many as may be in flight")
    await other.expect_nothing("more than may be in flight")
    counts.update(delivered=9.0, polls_capped=1.0, in_flight=8.0, lag_records=10.0)
    await expect_counts(own, "at the bound", **counts)
    for offset in offsets[2:8]:
        await other.ack(offset)
    await other.take([offsets[0]], 2, "taken back", max_records=1, consumer="ann", reclaim=True)
    counts.update(settled=7.0, reclaimed=2.0, delivered=10.0, redelivered=1.0, in_flight=1.0, lag_records=10.0)
    await other.take([offsets[1]], 2, "taken back", max_records=1, consumer="ann", reclaim=True)
    counts.update(delivered=11.0, redelivered=2.0, in_flight=2.0)
    await expect_counts(own, "after a reclaim", **counts)
    await other.ack(offsets[0])
    counts.update(settled=8.0, lapsed=1.0, dead_lettered=1.0, dead_letters=1.0, in_flight=0.0, lag_records=2.0)
    await expect_counts(own, "after one lapsed for the last time", **counts)
    (record,) = await other.poll(max_records=1)
    await other.nack(record)
    counts.update(delivered=12.0, nacked=1.0, owed=1.0)
    await expect_counts(own, "after a nack", **counts)
    records = await other.poll() + await other.poll()
    equal([record.offset for record in records], offsets[8:], "the rest")
    for record in records:
        await other.ack(record.offset)
    await other.discard(offsets[1])
    counts.update(delivered=14.0, redelivered=3.0, settled=10.0, owed=0.0, dead_letters=0.0, lag_records=0.0)
    await expect_counts(own, "in the end", **counts)


@scenario(own_broker=True)
async def queue_groups_that_rest(stage, client):
    """A group that nobody uses leaves the memory, unless it holds claims; it comes back as it was, and knows what it handed out."""
    felix = stage.felix
    _, own = stage.apart(settings(visibility=1.0, idle_ms=200))
    group = await begin(own, await own.connect())
    offsets = await group.publish(bodies(6))
    await group.take(offsets[:4], 1, "first deliveries", max_records=4)
    await group.ack(offsets[2])
    await own.surface.sleep(0.6)
    equal((await counted(own))["groups"], 1.0, "groups in memory while claims stand")
    await _until_at_rest(own)
    await group.ack(offsets[1])
    await raises(felix.FelixError, group.ack(offsets[5] + 1), "ack past the end", code="invalid_request")
    later = await group.publish([b"later"])
    await raises(felix.FelixError, group.ack(later[0]), "ack of what nobody was given", code="stale_claim", retry="retry")
    await _until_at_rest(own)
    for offset in (offsets[0], offsets[3]):
        records = await group.poll(max_records=1)
        equal([record.offset for record in records], [offset], "what was open comes first")
        await group.ack(offset)
    await group.take([*offsets[4:], *later], 1, "and then what is new")


async def _until_at_rest(stage) -> None:
    deadline = time.monotonic() + 10.0
    while (groups := (await counted(stage))["groups"]) > 0 and time.monotonic() < deadline:
        await stage.surface.sleep(0.05)
    equal(groups, 0.0, "groups in memory when nothing is claimed any more")
