"""Workers that crash, stall, give back and finish at random while the broker is killed: each record settled once or given up once."""

from __future__ import annotations

import random
import secrets
import time

from suite import metrics, placement
from suite.calling import refused
from suite.checks import Mismatch, equal, true
from suite.group import Group, nudge, restart
from suite.ledger import Ledger, Place, Rules
from suite.runner import scenario
from suite.scenarios.queue_failing import settings
from suite.working import Worker

SHARDS = 4
WORKERS = 8
PUBLISHERS = 4
RULES = Rules(visibility=0.6, limit=5)
BACKOFF = "0,50,100"  # milliseconds
STUCK = 60.0  # seconds without progress that fail the run
GAUGES = ("lag_records", "in_flight", "delayed", "owed")


@scenario(seconds=1800.0, own_broker=True, once=True)
async def queue_campaign(stage, client):
    """Nothing lost, nothing settled that comes again, one holder at a time, nothing stuck, all counters zero in the end."""
    environment = settings(visibility=RULES.visibility, backoff=BACKOFF, max_attempts=RULES.limit)
    daemon, apart = stage.apart({**environment, "FELIX_DURABLE_SEGMENT_BYTES": str(1 << 18)})
    campaign = Campaign(apart, daemon, secrets.randbits(32))
    try:
        return await campaign.run()
    except Mismatch as error:
        raise Mismatch(f"{error} (seed {campaign.seed}, {daemon.starts} starts, {campaign.settled()} settled)") from error


class Campaign:
    """The jobs of one run. A failure of one of them ends the others."""

    def __init__(self, stage, daemon, seed: int):
        self.seed = seed
        self.stage, self.ledger = stage, Ledger(RULES)
        self.over = False  # nothing is left to do, or another job failed
        self.clients: dict[int, object] = {}  # what each job calls through: workers from 0, publishers from -1 down, who watches
        self.stream = stage.stream(SHARDS, durable=True)
        self._daemon = daemon
        self._published: dict[Place, bytes] = {}  # acknowledged
        self._publishing = [True] * PUBLISHERS
        self._kills = 0
        self._dead: set[Place] = set()
        self._workers = [Worker(self, number, RULES.visibility) for number in range(WORKERS)]

    def settled(self) -> int:
        """Records of which a worker was told that they are finished."""
        return len(self.ledger.settled)

    async def run(self) -> str:
        """Everything; what it returns is a line for the report."""
        gather = self.stage.surface.gather
        publishing = (self._guard(self._publisher(number)) for number in range(PUBLISHERS))
        working = (self._guard(each.work) for each in self._workers)
        nudging = (self._guard(self._nudging(job)) for job in range(-PUBLISHERS, WORKERS + 1))
        await gather(*publishing, *working, *nudging, self._guard(self._watch), self._guard(self._killing))
        groups = self.groups(await self.stage.connect())
        await self._drain(groups)
        log = await self._log(groups)
        for place, payload in self._published.items():
            equal(log.get(place), payload, f"an acknowledged record at {place}")
        self.ledger.check(log, self._dead)
        await self._afterwards(groups)
        crashes = sum(each.crashes for each in self._workers)
        return (
            f"{len(log)} records, {self.ledger.deliveries} deliveries, {self.settled()} settled, {len(self._dead)} given up, "
            f"{crashes} workers crashed, {self._kills} kills"
        )

    def _guard(self, job):
        """A job whose failure ends the others."""

        async def run():
            try:
                await job()
            except BaseException:
                self.over = True
                raise

        return run

    def groups(self, client) -> list[Group]:
        """The group on each shard, through one client."""
        return [Group(self.stage, client, self.stream, shard=shard) for shard in range(SHARDS)]

    def _publisher(self, number: int):
        """Publish every so manieth record, on the shards in turn. What is not acknowledged is there or not."""
        stage, felix = self.stage, self.stage.felix
        keys = [placement.keys_for(shard, SHARDS, 1)[0] for shard in range(SHARDS)]

        async def publish():
            self.clients[-1 - number] = client = await stage.connect()
            for record in range(number, stage.sizes.queue_records, PUBLISHERS):
                if self.over:
                    return
                body, shard = b"job-%06d" % record, (record // PUBLISHERS) % SHARDS
                try:
                    offset = await client.publish(stage.tenant, stage.namespace, self.stream, body, key=keys[shard])
                    self._published[shard, offset] = body
                except felix.FelixError as error:
                    refused(felix, error)  # raises what a restart does not explain
                    await stage.surface.sleep(0.05)
            self._publishing[number] = False

        return publish

    def _left(self) -> set[Place]:
        return set(self._published) - self.ledger.settled - self.ledger.doubtful - self._dead

    async def _watch(self) -> None:
        """Look what was given up, until every record that was acknowledged is finished one way or the other."""
        self.clients[WORKERS] = client = await self.stage.connect()
        before, since = -1, time.monotonic()
        while not self.over:
            await self._look(client)
            known = self.settled() + len(self.ledger.doubtful) + len(self._dead)
            if not any(self._publishing) and not self._left() and self._kills == self.stage.sizes.kills:
                self.over = True
            if known != before:
                before, since = known, time.monotonic()
            elif time.monotonic() - since > STUCK:
                raise Mismatch(f"no progress for {STUCK:.0f} s; left are {sorted(self._left())[:10]}")
            await self.stage.surface.sleep(0.3)

    async def _look(self, client) -> None:
        felix = self.stage.felix
        try:
            self._dead = {(each.shard, offset) for each in self.groups(client) for offset in await each.dead_letters()}
        except felix.FelixError as error:
            refused(felix, error)

    async def _killing(self) -> None:
        """Kill and start the broker, spread over the settlements."""
        stage, sizes = self.stage, self.stage.sizes
        rng = random.Random(self.seed)
        for number in range(sizes.kills):
            at = (number + rng.random()) * 0.9 * sizes.queue_records / sizes.kills
            while self.settled() < at and not self.over:
                await stage.surface.sleep(0.001)
            before = time.monotonic()
            await stage.surface.aside(self._daemon.kill)
            await stage.surface.aside(self._daemon.start)
            self.ledger.killed(before, time.monotonic())
            self._kills += 1

    def _nudging(self, job: int):
        """Have the client of a job notice each kill."""

        async def nudging():
            seen = 0
            while not self.over:
                if self._kills > seen and job in self.clients:
                    seen = self._kills
                    await nudge(self.groups(self.clients[job])[0])
                await self.stage.surface.sleep(0.02)

        return nudging

    async def _drain(self, groups: list[Group]) -> None:
        """Finish what is left of what nobody was told of, until the broker counts nothing any more."""
        drainer, deadline = self._workers[0], time.monotonic() + STUCK
        while True:
            taken = 0
            for group in groups:
                taken += await drainer.drain(group)
            counts = await self._counts()
            if not taken and not any(counts.values()):
                break
            true(time.monotonic() < deadline, f"after {STUCK:.0f} s of draining the broker counts {counts}")
        await self._look(groups[0].client)

    async def _counts(self) -> dict[str, float]:
        values = await self.stage.surface.aside(lambda: metrics.plain(self.stage.dev))
        return {name: values[f"felix_group_{name}"] for name in GAUGES}

    async def _log(self, groups: list[Group]) -> dict[Place, bytes]:
        """Everything that the log holds, as another group is given it: in order, once, at the first attempt."""
        log: dict[Place, bytes] = {}
        for group in groups:
            auditor, following = group.called("auditor"), 0
            while records := await auditor.poll(max_records=200):
                for record in records:
                    equal(record.attempts, 1, f"attempts of {record.offset} for a group that reads everything once")
                    equal(record.offset - record.skipped_before, following, f"offsets of shard {group.shard} without a gap")
                    following = record.offset + 1
                    log[group.shard, record.offset] = record.payload
                    await auditor.ack(record.offset)
        return log

    async def _afterwards(self, groups: list[Group]) -> None:
        """Kill it once more: nothing comes, the list is the same. Half of it is redriven and finished, the rest discarded; kill it again."""
        dead = sorted(self._dead)
        equal(await self._listed(groups), dead, "dead letters before a kill")
        await restart(groups[0], self._daemon.kill, self._daemon.start)
        await self._expect_nothing(groups, "after the work was done")
        equal(await self._listed(groups), dead, "dead letters after a kill")
        for number, (shard, offset) in enumerate(dead):
            if number % 2:
                await groups[shard].redrive(offset)
                await groups[shard].take([offset], 1, f"redriven {shard}/{offset}")
                await groups[shard].ack(offset)
            else:
                await groups[shard].discard(offset)
        await restart(groups[0], self._daemon.kill, self._daemon.start)
        await self._expect_nothing(groups, "after all dead letters were dealt with")
        equal(await self._listed(groups), [], "dead letters in the end")
        equal(await self._counts(), dict.fromkeys(GAUGES, 0.0), "what the broker counts in the end")

    async def _listed(self, groups: list[Group]) -> list[Place]:
        return [(each.shard, offset) for each in groups for offset in await each.dead_letters()]

    async def _expect_nothing(self, groups: list[Group], what: str) -> None:
        for group in groups:
            await group.again()
            await group.expect_nothing(f"shard {group.shard} {what}", wait=0.3)
