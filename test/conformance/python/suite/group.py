"""One consumer group of one shard seen through one client, and what is expected of a poll."""

from __future__ import annotations

import time

from suite.calling import refused
from suite.checks import Mismatch, equal, true
from suite.stage import PROBE

PATIENCE = 15.0  # seconds until a broker that was started again must answer
PROMPT = 1.0  # seconds that an answer may take for which nothing is to be waited


class Group:
    """The calls of one group. Polls do not wait unless they are told to."""

    def __init__(self, stage, client, stream: str, name: str = "workers", shard: int = 0):
        self.stage, self.client, self.stream, self.name, self.shard = stage, client, stream, name, shard
        self._scope = (stage.tenant, stage.namespace, stream, shard, name)

    def by(self, client) -> Group:
        """The same group through another client."""
        return Group(self.stage, client, self.stream, self.name, self.shard)

    def called(self, name: str) -> Group:
        """Another group of the same shard."""
        return Group(self.stage, self.client, self.stream, name, self.shard)

    def on(self, shard: int) -> Group:
        """The same group on another shard."""
        return Group(self.stage, self.client, self.stream, self.name, shard)

    async def poll(self, max_records: int = 32, wait: float = 0.0, **options) -> list:
        return await self.client.group_poll(*self._scope, max_records=max_records, wait=wait, **options)

    async def ack(self, offset: int) -> None:
        await self.client.group_ack(*self._scope, offset)

    async def nack(self, record) -> None:
        await self.client.group_nack(*self._scope, record)

    async def dead_letters(self) -> list[int]:
        return await self.client.group_dead_letters(*self._scope)

    async def discard(self, offset: int) -> None:
        await self.client.group_discard(*self._scope, offset)

    async def redrive(self, offset: int) -> None:
        await self.client.group_redrive(*self._scope, offset)

    async def take(self, want: list[int], attempts: int, what: str, **options) -> list:
        """Poll once and expect the records at these offsets, in this order, each with this number of attempts."""
        records = await self.poll(**options)
        got = [(record.offset, record.attempts) for record in records]
        equal(got, [(offset, attempts) for offset in want], f"{what}: offsets and attempts")
        return records

    async def take_each(self, want: list[int], attempts: int, what: str, **options) -> list:
        """Expect these records one by one, as all are handed out that were handed out before."""
        records = []
        for offset in want:
            records += await self.take([offset], attempts, what, **options)
        return records

    async def expect_nothing(self, what: str, wait: float = 0.0) -> None:
        """Poll and expect no record."""
        equal(await self.poll(wait=wait), [], what)

    async def past_the_probe(self) -> None:
        """A group begins at the oldest record, which is the one by which a new stream was tried."""
        records = await self.take_first("the first poll of a group")
        equal((records[0].payload, records[0].attempts), (PROBE, 1), "the first record of a group")
        await self.ack(records[0].offset)

    async def take_first(self, what: str) -> list:
        """Poll for one record and expect it."""
        records = await self.poll(max_records=1)
        equal(len(records), 1, f"{what}: records")
        return records

    async def publish(self, bodies, **options) -> list[int]:
        """Publish to shard 0 and return the offsets. More shards take keys, and are filled by the scenarios that have them."""
        true(self.shard == 0, "published without a key, records go to shard 0")
        scope = (self.stage.tenant, self.stage.namespace, self.stream)
        return [await self.client.publish(*scope, body, **options) for body in bodies]

    async def kept(self, finished: int) -> None:
        """Wait until what this client was told is durable; finished is an offset that was acked before.

        A poll and a nack are answered before what follows from them is durable: the number of a delivery, a dead letter. An ack is
        answered when all before it is, also if it is a repetition.
        """
        await self.ack(finished)

    async def again(self) -> None:
        """Wait until a client that has lost its broker has found it again."""
        felix, deadline = self.stage.felix, time.monotonic() + PATIENCE
        while True:
            try:
                await self.dead_letters()
                return
            except (felix.ConnectionError, felix.ShardUnavailableError, felix.OutcomeUnknownError) as error:
                if time.monotonic() >= deadline:
                    raise Mismatch(f"no answer for {PATIENCE:.0f} s after a start: {error}") from error
            await self.stage.surface.sleep(0.02)


async def begin(stage, client, name: str = "workers") -> Group:
    """A group of a new stream of one shard, which has finished all there is."""
    group = Group(stage, client, stage.stream(1, durable=True), name)
    await group.past_the_probe()
    return group


async def restart(group: Group, end, start) -> None:
    """End the broker by the one call and start it by the other, and wait until the client has found it."""
    await group.stage.surface.aside(end)
    await group.stage.surface.aside(start)
    await group.again()


async def nudge(group: Group) -> None:
    """Make a client notice that its broker was killed.

    A call that was in flight waits 6 s until the client gives its connection up; another one on that connection ends this earlier.
    """
    try:
        await group.dead_letters()
    except group.stage.felix.FelixError as error:
        refused(group.stage.felix, error)


def bodies(count: int) -> list[bytes]:
    """Payloads that tell where they belong."""
    return [b"job-%06d" % number for number in range(count)]
