"""Mixed operations under watches while the broker is killed: every change once, by offset, and nothing acknowledged lost."""

from __future__ import annotations

import random
import secrets
import time
from collections import defaultdict

from suite import placement
from suite.calling import Caller, Key, Sum
from suite.checks import Mismatch, equal, true
from suite.following import PATIENCE, Follower
from suite.history import Outcome, explain
from suite.runner import scenario

SHARDS = 4
WORKERS = 8
WIDE = 6  # keys of each worker in the cache of four shards, each watched by itself
NARROW = 2  # keys of each worker in the cache of one shard, which is watched by prefix
AHEAD = 32  # puts that a worker may be ahead of a watch; the client keeps 256 items
COUNTS = 0.1  # share of operations on counters
LAST = b"last"  # value that ends the history of each key


@scenario(seconds=1800.0, own_broker=True, once=True)
async def cache_campaign(stage, client):
    """Operations on four shards, watches that go on from their last offset, brokers killed: the histories are the log's."""
    daemon, apart = stage.apart()
    campaign = Campaign(apart, daemon, secrets.randbits(32))
    try:
        return await campaign.run()
    except Mismatch as error:
        raise Mismatch(f"{error} (seed {campaign.seed}, {daemon.starts} starts, {campaign.done()} operations)") from error


class Campaign:
    """The jobs of one run. A failure of one of them ends the others."""

    def __init__(self, stage, daemon, seed: int):
        self.seed = seed
        self._stage, self._daemon = stage, daemon
        self._acknowledged = [0] * WORKERS  # operations of each worker on the cache of four shards
        self._unknown = [0] * WORKERS
        self._working = [True] * WORKERS
        self._broken, self._started = False, 0.0
        self._wide, self._narrow = stage.cache(SHARDS), stage.cache(1)
        self._keys = [self._keys_of(number) for number in range(WORKERS)]
        self._sums = [Sum() for _ in range(WORKERS)]
        self._followers: list[Follower] = []

    def done(self) -> int:
        """Operations on the cache of four shards that were answered."""
        return sum(self._acknowledged)

    async def run(self) -> str:
        """Everything; what it returns is a line for the report."""
        stage = self._stage
        calls, watches = await stage.connect(), await stage.connect()
        await self._watch(watches)
        await stage.surface.gather(
            *(self._guard(self._worker(calls, number)) for number in range(WORKERS)),
            *(self._guard(self._following(each)) for each in self._followers),
            self._guard(self._killing(calls)),
        )
        await self._replay(await stage.connect())
        self._compare()
        changes = sum(len(each.changes) for each in self._followers)
        again = sum(each.watches - 1 for each in self._followers)
        return (
            f"{self.done()} operations, {sum(self._unknown)} of unknown outcome, {self._daemon.starts - 1} kills, "
            f"{changes} changes, {again} watches taken up again"
        )

    def _keys_of(self, worker: int) -> list[Key]:
        keys = []
        for number in range(WIDE):
            shard = (worker + number) % SHARDS
            name = placement.keys_for(shard, SHARDS, WORKERS * WIDE)[worker * WIDE + number].decode()
            keys.append(Key(self._wide, name, shard))
        return keys + [Key(self._narrow, f"w{worker}/{number}", 0) for number in range(NARROW)]

    def _all_keys(self) -> list[Key]:
        return [key for keys in self._keys for key in keys]

    async def _watch(self, client) -> None:
        """One watch for each key of the wide cache; two of the narrow one, for all keys and for those of one worker."""
        filters = self._stage.felix.CacheWatchFilter
        for key in self._all_keys():
            if key.cache == self._wide:
                self._follower(client, filters.key(key.name), [key])
        narrow = [key for key in self._all_keys() if key.cache == self._narrow]
        self._follower(client, filters.prefix(""), narrow)
        self._follower(client, filters.prefix("w0/"), [key for key in narrow if key.name.startswith("w0/")])
        for follower in self._followers:
            await follower.begin()

    def _follower(self, client, watched, keys: list[Key]) -> None:
        name = f"the watch of {keys[0].name}" if len(keys) == 1 else f"the watch of {len(keys)} keys"
        follower = Follower(self._stage, client, keys[0].cache, watched, name, lambda: self._broken, lambda: self._started)
        follower.keys = keys
        self._followers.append(follower)
        for key in keys:
            key.followers.append(follower)

    def _guard(self, job):
        """A job whose failure ends the others."""

        async def run():
            try:
                await job()
            except BaseException:
                self._broken = True
                raise

        return run

    def _following(self, follower: Follower):
        return lambda: follower.until(_all_ended(follower.keys))

    def _worker(self, client, number: int):
        rng = random.Random(f"{self.seed}/{number}")
        caller = Caller(self._stage, client, rng)

        async def turn(count: int) -> None:
            if rng.random() < COUNTS:
                wide, outcome = True, await caller.count(self._wide, f"counter-{number}", self._sums[number])
            else:
                key = rng.choice(self._keys[number])
                await self._room(key)
                wide, outcome = key.cache == self._wide, await caller.act(key, b"%d-%d" % (number, count))
            self._acknowledged[number] += wide and outcome is Outcome.DONE
            if outcome is not Outcome.DONE:
                self._unknown[number] += outcome is Outcome.UNKNOWN
                await self._stage.surface.sleep(0.02)

        async def work():
            count = 0
            while self.done() < self._stage.sizes.operations and not self._broken:
                await turn(count := count + 1)
            self._working[number] = False

        return work

    async def _room(self, key: Key) -> None:
        """Wait until no watch of the key is far behind: the client's queue is bounded."""
        await self._until(
            lambda: all(each.expected - each.puts <= AHEAD for each in key.followers),
            lambda: ", ".join(f"{each.name} saw {each.puts} of {each.expected} puts" for each in key.followers),
        )

    async def _until(self, holds, what) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            true(not self._broken, "another job failed")
            true(time.monotonic() < deadline, f"{what()} after {PATIENCE:.0f} s")
            await self._stage.surface.sleep(0.002)

    def _killing(self, client):
        """Kill and start the broker spread over the operations, and once more behind the last; then end all histories."""
        stage, sizes = self._stage, self._stage.sizes
        rng = random.Random(self.seed)
        caller, nobody = Caller(stage, client, rng), Key(self._wide, "nobody", 0)

        async def again() -> None:
            await stage.surface.aside(self._daemon.kill)
            await stage.surface.aside(self._daemon.start)
            self._started = time.monotonic()
            # Calls that were in flight wait 6 s until the client gives its connection up; the next one makes it notice.
            await caller.get(nobody)

        async def kill():
            for number in range(sizes.kills):
                at = (number + rng.random()) * sizes.operations / sizes.kills
                while self.done() < at and not self._broken:
                    await stage.surface.sleep(0.001)
                await again()
            while any(self._working) and not self._broken:
                await stage.surface.sleep(0.01)
            await again()
            await self._settle(caller, client)

        return kill

    async def _settle(self, caller: Caller, client) -> None:
        """Read everything after the last start, then write the value that ends each history."""
        first = self._keys[0][0]
        deadline = time.monotonic() + PATIENCE
        while await caller.get(first) is not Outcome.DONE:
            true(time.monotonic() < deadline, f"no get for {PATIENCE:.0f} s after the last start")
        for key in self._all_keys():
            equal(await caller.get(key), Outcome.DONE, f"final get of {key.name}")
        scope = (self._stage.tenant, self._stage.namespace, self._wide)
        for number, total in enumerate(self._sums):
            total.read(await client.counter_get(*scope, f"counter-{number}"))
        for key in self._all_keys():
            equal(await caller.put(key, LAST), Outcome.DONE, f"last put of {key.name}")

    async def _replay(self, client) -> None:
        """What the log says from where each watch began is what the watch has seen, change for change."""
        for follower in self._followers:
            log = follower.once_more(client)
            await log.begin(follower.first)
            await log.until(_all_ended(follower.keys))
            await log.close()
            equal(len(follower.changes), len(log.changes), f"changes of {follower.name}")
            for number, (seen, kept) in enumerate(zip(follower.changes, log.changes)):
                equal(seen, kept, f"change {number} of {follower.name}")

    def _compare(self) -> None:
        """What was done explains each key's changes, and each offset of a shard is that of one change."""
        offsets = defaultdict(list)
        for key in self._all_keys():
            changes = [change for name, change in key.followers[0].changes if name == key.name]
            explain(key.name, key.operations, changes)
            offsets[key.cache, key.shard] += [change.offset for change in changes]
        for place, given in offsets.items():
            equal(len(set(given)), len(given), f"different offsets of shard {place}")
            equal(max(given) - min(given) + 1, len(given), f"offsets of shard {place} from the first change to the last")


def _all_ended(keys: list[Key]):
    """Whether the last change of each key was seen."""
    left = {key.name for key in keys}

    def ended(name: str, change) -> bool:
        if change.value == LAST:
            left.discard(name)
        return not left

    return ended
