"""Records that fail: lapses, back-off, dead letters, redrives, bounds. The brokers are of the scenarios' own, with short times."""

from __future__ import annotations

import time

from suite.checks import equal, raises, true
from suite.group import PROMPT, Group, begin, bodies
from suite.runner import scenario

VISIBILITY = 0.4  # seconds
LATE = 0.5  # seconds that a record may come after it is due
EARLY = 0.2  # seconds that an answer may take on a busy machine


def settings(visibility: float = VISIBILITY, backoff: str = "0", **others) -> dict[str, str]:
    """The environment of a broker with short times."""
    named = {f"FELIX_GROUP_{name.upper()}": str(value) for name, value in others.items()}
    times = {"FELIX_GROUP_VISIBILITY_TIMEOUT_MS": str(int(visibility * 1000)), "FELIX_GROUP_RETRY_BACKOFF_MS": backoff}
    return {**times, **named}


async def apart(stage, **options) -> tuple[Group, Group]:
    """A group on a broker with these settings, for two workers on connections of their own."""
    _, own = stage.apart(settings(**options))
    group = await begin(own, await own.connect())
    return group, group.by(await own.connect())


@scenario(own_broker=True)
async def queue_claims_lapse(stage, client):
    """A claim that lapses goes to another worker, and not before; then a late nack is refused, and a late ack settles."""
    felix = stage.felix
    group, other = await apart(stage)
    offsets = await group.publish(bodies(3))
    sent = time.monotonic()
    held = await group.take(offsets, 1, "first deliveries")
    taken = time.monotonic()
    again = await other.poll(wait=10.0)
    came = time.monotonic()
    true(sent + VISIBILITY <= came < taken + VISIBILITY + LATE, f"a lapsed record came after {came - sent:.2f} to {came - taken:.2f} s")
    again += await other.take_each(offsets[1:], 2, "what lapsed, alone")
    equal([(record.offset, record.attempts) for record in again], [(offset, 2) for offset in offsets], "what lapsed")
    await raises(felix.FelixError, group.nack(held[0]), "nack of what lapsed", code="stale_claim", retry="fatal")
    await group.ack(offsets[0])
    await raises(felix.FelixError, other.nack(again[0]), "nack of what another has finished", code="stale_claim", retry="fatal")
    for record in again:
        await other.ack(record.offset)
    await group.expect_nothing("a queue that is finished", wait=2 * VISIBILITY)


@scenario(own_broker=True)
async def queue_backs_off(stage, client):
    """The pause before a record comes again grows with its failures, as set, for nacks as for lapses, and never ends early."""
    pauses = (0.0, 0.3, 0.7, 0.7)  # seconds; the last one is for all that follow
    group, other = await apart(stage, backoff="0,300,700", max_attempts=0)
    for lapses in (False, True):
        await group.publish([b"job"])
        (record,) = await group.take_first("a first delivery")
        for number, pause in enumerate(pauses):
            due, early = (pause + VISIBILITY, EARLY) if lapses else (pause, 0.0)
            sent = answered = time.monotonic()  # a claim counts from a moment before its answer came
            if not lapses:
                await group.nack(record)
                answered = time.monotonic()
            (record,) = await group.poll(wait=10.0)
            came = time.monotonic()
            equal(record.attempts, number + 2, f"attempts after failure {number + 1}")
            true(due - early <= came - sent, f"failure {number + 1}, lapse {lapses}: came after {came - sent:.2f} s, want {due}")
            true(came - answered < due + LATE, f"failure {number + 1}, lapse {lapses}: came after {came - answered:.2f} s, want {due}")
        await group.ack(record.offset)
    await other.expect_nothing("a queue that is finished")


@scenario(own_broker=True)
async def queue_gives_up(stage, client):
    """After as many failures as are allowed, nacks or lapses, a record is a dead letter, and the queue goes on without it."""
    limit = 3
    group, other = await apart(stage, max_attempts=limit)
    offsets = await group.publish(bodies(6))
    held = await group.take(offsets, 1, "first deliveries")
    for place in (1, 3, 4, 5):
        await group.ack(offsets[place])
    await group.nack(held[2])
    for place, nacks in ((2, True), (0, False)):  # the first one was claimed all the while, and lapses
        for attempts in range(2, limit + 1):
            (record,) = await other.poll(wait=10.0)
            equal((record.offset, record.attempts), (offsets[place], attempts), "the next delivery")
            if nacks:
                await other.nack(record)
    await _until_listed(group, [offsets[0], offsets[2]])
    await other.expect_nothing("a queue that has given up on the rest", wait=2 * VISIBILITY)
    equal(await group.called("others").dead_letters(), [], "dead letters of another group")
    later = await group.publish([b"later"])
    await group.take(later, 1, "what was published since")


async def _until_listed(group: Group, want: list[int]) -> None:
    deadline = time.monotonic() + 10.0
    while (listed := await group.dead_letters()) != want and time.monotonic() < deadline:
        await group.stage.surface.sleep(0.02)
    equal(listed, want, "dead letters, lowest first")


@scenario(own_broker=True)
async def queue_dead_letters(stage, client):
    """A redriven record comes as if for the first time; a discarded one never; a late ack takes one off the list."""
    felix, limit = stage.felix, 2
    group, other = await apart(stage, visibility=30.0, max_attempts=limit)
    offsets = await group.publish(bodies(5))
    await give_up(group, offsets, limit)
    equal(await other.dead_letters(), offsets, "dead letters")
    await other.ack(offsets[0])
    await other.discard(offsets[1])
    await other.discard(offsets[1])
    equal(await group.dead_letters(), offsets[2:], "dead letters without one that was acked late and one that was discarded")
    for offset in (offsets[0], offsets[1]):
        await raises(felix.FelixError, group.redrive(offset), "redrive of no dead letter", code="invalid_request", retry="fatal")
    for offset in (offsets[4], offsets[2], offsets[4]):
        await group.redrive(offset)
    equal(await group.dead_letters(), offsets[3:4], "dead letters while two are handed out again")
    new = await group.publish([b"new"])
    again = await group.poll(max_records=32)
    while len(again) < 3:
        records = await group.poll(max_records=32)
        true(records, f"only {len(again)} of 3 records came")
        again += records
    got = [(record.offset, record.attempts) for record in again]
    equal(got, [(offset, 1) for offset in (offsets[2], offsets[4], *new)], "redriven records, then new ones")
    await group.ack(offsets[2])
    await give_up(group, offsets[4:], limit, again[1:2])
    equal(await group.dead_letters(), offsets[3:], "dead letters after one failed again")
    await group.discard(offsets[3])
    await group.redrive(offsets[4])
    await group.take(offsets[4:], 1, "redriven once more")
    await group.ack(offsets[4])
    await group.ack(new[0])
    equal(await group.dead_letters(), [], "dead letters in the end")
    await group.expect_nothing("a queue that is finished")


async def give_up(group: Group, offsets: list[int], limit: int, held: list | None = None) -> None:
    """Nack these records, of which nothing was delivered but what is held, until they are dead letters."""
    records = held or await group.take(offsets, 1, "first deliveries")
    for attempts in range(1, limit + 1):
        for record in records:
            await group.nack(record)
        if attempts < limit:
            records = await group.take_each(offsets, attempts + 1, f"delivery {attempts + 1}", wait=5.0)


@scenario(own_broker=True)
async def queue_poison_spares_its_neighbours(stage, client):
    """A worker that dies of one record, again and again, with all it holds: that record is given up, and no other (QUE-05)."""
    count, bad = 40, 13
    group, other = await apart(stage, visibility=0.2, max_attempts=3)
    offsets = await group.publish(bodies(count))
    finished: list[int] = []
    while records := await group.poll(max_records=20, wait=2.0):
        if any(record.offset == offsets[bad] for record in records):
            continue
        for record in records:
            await group.ack(record.offset)
            finished.append(record.offset)
    equal(await group.dead_letters(), [offsets[bad]], "dead letters")
    equal(sorted(set(finished)), offsets[:bad] + offsets[bad + 1 :], "what was finished")
    await other.expect_nothing("a queue that is finished")


@scenario(own_broker=True)
async def queue_in_flight(stage, client):
    """As many records as may be in flight are; at the bound polls are answered empty, and a settlement wakes them."""
    bound, longest = 10, 1.5
    _, own = stage.apart(settings(visibility=30.0, max_in_flight=bound, max_wait_ms=int(longest * 1000)))
    group = await begin(own, await own.connect())
    other = group.by(await own.connect())
    offsets = await group.publish(bodies(3 * bound))
    await group.take(offsets[:6], 1, "below the bound", max_records=6)
    await group.take(offsets[6:bound], 1, "up to the bound")
    started = time.monotonic()
    await other.expect_nothing("at the bound", wait=20.0)
    took = time.monotonic() - started
    true(longest <= took < longest + PROMPT, f"a poll that wants to wait 20 s, and may {longest} s, took {took:.2f} s")

    async def waiting() -> list:
        return await other.poll(wait=20.0)

    async def settling() -> list:
        await own.surface.sleep(0.3)
        for offset in offsets[:bound]:
            await group.ack(offset)
        return []

    woken, _ = await own.surface.gather(waiting, settling)
    true(woken and woken[0].offset == offsets[bound], f"{woken} for a poll that waited for room")
    taken = [record.offset for record in woken] + [record.offset for record in await group.poll()]
    equal(taken, offsets[bound : 2 * bound], "records after room was made")
