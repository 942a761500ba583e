"""One worker of a queue that crashes, stalls, gives back and finishes at random, and notes what it was told."""

from __future__ import annotations

import random
import time

from suite.calling import refused
from suite.checks import Mismatch
from suite.group import PATIENCE, Group
from suite.history import Outcome
from suite.ledger import Delivery, Settlement

POISON = 41  # each so manieth record is never finished by a worker

# What a worker does with a record, in parts of a thousand; the rest are acks, and so many of a thousand acks are sent twice.
CRASH, STALL, NACK, TWICE = 8, 15, 80, 50


class Worker:
    """Polls the shards at random and does at random what workers do. It notes everything in the ledger of its campaign."""

    def __init__(self, campaign, number: int, visibility: float):
        self.crashes = 0
        self._visibility = visibility
        self._campaign, self._number = campaign, number
        self._stage, self._ledger = campaign.stage, campaign.ledger
        self._rng = random.Random(f"{campaign.seed}/{number}")
        self._reclaims = number % 2 == 0  # it has a name, and takes back what it held when it crashed

    async def work(self) -> None:
        """Connect, work until it crashes, and so on."""
        while not self._campaign.over:
            self._campaign.clients[self._number] = client = await self._connect()
            groups = self._campaign.groups(client)
            while not self._campaign.over:
                group, wait = self._rng.choice(groups), self._rng.choice((0.0, 0.0, 0.2))
                if not await self._turn(await self._poll(group, wait), group):
                    self.crashes += 1
                    break  # the client goes, with all that it holds

    async def drain(self, group: Group) -> int:
        """Poll once and finish everything; how many records it was."""
        records = await self._poll(group, 0.2, named=False)
        for record, _ in records:
            await self._ack(group, record)
        return len(records)

    async def _connect(self):
        felix, deadline = self._stage.felix, time.monotonic() + PATIENCE
        while True:
            try:
                return await self._stage.connect()
            except felix.FelixError as error:
                if time.monotonic() >= deadline:
                    raise Mismatch(f"no connection for {PATIENCE:.0f} s: {error}") from error
            await self._stage.surface.sleep(0.05)

    async def _poll(self, group: Group, wait: float, named: bool = True) -> list:
        felix = self._stage.felix
        member = f"worker-{self._number}" if named and self._reclaims else ""
        options = {"consumer": member, "reclaim": True} if member else {}
        asked = time.monotonic()
        try:
            records = await group.poll(max_records=self._rng.choice((1, 4, 16)), wait=wait, **options)
        except felix.FelixError as error:
            refused(felix, error)
            await self._stage.surface.sleep(0.05)
            return []
        came = time.monotonic()
        taken = [(record, Delivery(asked, came, record.attempts, record.payload, member)) for record in records]
        for record, delivery in taken:
            self._ledger.delivered((group.shard, record.offset), delivery)
        return taken

    async def _turn(self, taken: list, group: Group) -> bool:
        """Do something with each record; False for a crash."""
        for record, delivery in taken:
            if self._campaign.over:
                break
            poison = int(record.payload[-6:]) % POISON == 0 if record.payload.startswith(b"job-") else False
            dice = self._rng.randrange(CRASH + STALL + NACK if poison else 1000)
            if dice < CRASH:
                return False
            if dice < CRASH + STALL:
                await self._stage.surface.sleep(self._visibility * self._rng.uniform(0.9, 1.5))
                given_back = poison or self._rng.random() < 0.5
            else:
                given_back = dice < CRASH + STALL + NACK
            if given_back:
                await self._nack(group, record, delivery)
                continue
            for _ in range(2 if self._rng.randrange(1000) < TWICE else 1):
                await self._ack(group, record)
        return True

    async def _ack(self, group: Group, record) -> None:
        ack = await self._settle(lambda: group.ack(record.offset))
        self._ledger.acked((group.shard, record.offset), ack)

    async def _nack(self, group: Group, record, delivery: Delivery) -> None:
        nack = await self._settle(lambda: group.nack(record), delivery)
        self._ledger.nacked((group.shard, record.offset), nack)

    async def _settle(self, call, delivery: Delivery | None = None) -> Settlement:
        felix, sent = self._stage.felix, time.monotonic()
        try:
            await call()
            outcome = Outcome.DONE
        except felix.FelixError as error:
            if error.code == "stale_claim":
                outcome = Outcome.REFUSED
            else:  # a broker that was not there yet did nothing either, but to an ack that is as good as unknown
                refused(felix, error)
                outcome = Outcome.UNKNOWN
            await self._stage.surface.sleep(0.01)
        return Settlement(sent, time.monotonic(), outcome, delivery)
