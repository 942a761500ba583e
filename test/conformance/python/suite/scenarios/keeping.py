"""What a cache keeps when its broker is killed or stopped and started again, and what the other back end does not."""

from __future__ import annotations

import random
import secrets
import time

from suite import placement
from suite.checks import Mismatch, equal, true
from suite.following import PATIENCE, next_change
from suite.runner import scenario
from suite.scenarios.caching import Cache
from suite.scenarios.counting import Counters
from suite.scenarios.watching import watcher

BRIEF = 1.0  # seconds of a life that ends while nobody serves
HOT = 32 * 1024  # bytes of values that are overwritten until the log is compacted


async def answering(stage, cache: Cache) -> None:
    """Wait until a client that has lost its broker has found it again."""
    felix, deadline = stage.felix, time.monotonic() + PATIENCE
    while True:
        try:
            await cache.get("anything")
            return
        except (felix.ConnectionError, felix.ShardUnavailableError) as error:
            if time.monotonic() >= deadline:
                raise Mismatch(f"no get for {PATIENCE:.0f} s after a start: {error}") from error
        await stage.surface.sleep(0.02)


async def held(watch) -> dict[str, tuple]:
    """What a cache of one shard holds: value, offset of the put and end of life by key."""
    handle = await watch(prefix="", retained=True)
    changes = [await next_change(handle, "what is there") for _ in range(handle.retained_count)]
    await handle.close()
    return {each.key: (each.value, each.offset, each.expires_at_millis) for each in changes}


@scenario(own_broker=True)
async def cache_survives_restarts(stage, client):
    """Values, lives, the offsets of puts and deletes are there after a kill and after a stop; lives go on meanwhile."""
    daemon, apart = stage.apart()
    user, name = await apart.connect(), apart.cache(1)
    cache, watch = Cache(apart, user, name), watcher(apart, user, name)
    values = {f"key/{number}": bytes([number]) * (number * 37) for number in range(200)}
    for number, (key, value) in enumerate(values.items()):
        await cache.put(key, b"old")
        await cache.put(key, value, **({"ttl": 300.0} if number % 2 else {}))
    for number in range(0, 200, 10):
        equal(await cache.delete(f"key/{number}"), values.pop(f"key/{number}"), f"delete key/{number}")
    before, newest = await held(watch), -1
    equal({key: each[0] for key, each in before.items()}, values, "what is there before the first restart")
    for number, (end, pause) in enumerate(((daemon.kill, BRIEF), (daemon.stop, 0.0), (daemon.kill, 0.0))):
        brief = f"brief/{number}"
        await cache.put(brief, b"b", ttl=BRIEF if pause else 300.0)
        newest = max(newest, (await held(watch))[brief][1])
        await apart.surface.aside(end)
        await apart.surface.sleep(pause)
        await apart.surface.aside(daemon.start)
        await answering(apart, cache)
        equal(await cache.get(brief), None if pause else b"b", f"an entry with {BRIEF if pause else 300.0} s to live")
        after = await held(watch)
        if not pause:
            before[brief] = after[brief]
        equal(after, before, f"values, offsets and ends of lives after restart {number}")
        for key, value in values.items():
            equal(await cache.get(key), value, f"get {key} after restart {number}")
        equal(await cache.get("key/0"), None, "a key that was deleted")
        await _goes_on(cache, watch, newest, number)
        before["on"] = (await held(watch))["on"]
        values["on"] = b"%d" % number
    return f"{len(values)} values, 3 restarts"


async def _goes_on(cache: Cache, watch, newest: int, number: int) -> None:
    """A watch from before the restart goes on after it, and no offset is given twice."""
    handle = await watch(prefix="", start=newest + 1)
    await cache.put("on", b"%d" % number)
    change = await next_change(handle, "the first change after a restart")
    if change.key == "brief/0":
        equal(change.value, None, "the end of a life that nobody served")
        change = await next_change(handle, "the second change after a restart")
    equal((change.key, change.value), ("on", b"%d" % number), "the change after a restart")
    true(change.offset > newest, f"its offset {change.offset} after {newest}")
    await handle.close()


@scenario(own_broker=True)
async def cache_survives_kills_in_compaction(stage, client):
    """Kills while overwritten values are compacted away: all else keeps value, offset and end; the last puts are there."""
    daemon, apart = stage.apart({"FELIX_DURABLE_SEGMENT_BYTES": str(8 * HOT)})
    user, name = await apart.connect(), apart.cache(1)
    cache, watch, rng = Cache(apart, user, name), watcher(apart, user, name), random.Random(secrets.randbits(32))
    for number in range(100):
        await cache.put(f"kept/{number}", bytes([number]) * (number * 50), **({"ttl": 300.0} if number % 2 else {}))
    first = await held(watch)
    writers = [Overwriter(apart, cache, f"hot/{number}") for number in range(4)]

    async def kill():
        await apart.surface.sleep(0.1 + 0.3 * rng.random())
        await apart.surface.aside(daemon.kill)
        await apart.surface.aside(daemon.start)
        await answering(apart, cache)
        for writer in writers:
            writer.over = True

    compacted = 0
    for number in range(6):
        await apart.surface.gather(*(writer.write for writer in writers), kill)
        now = await held(watch)
        for writer in writers:
            writer.check(now.pop(writer.key, None))
        equal(now, first, f"values, offsets and ends of lives that nobody wrote, after kill {number}")
        handle = await watch(prefix="kept/", start=0)
        compacted += handle.resnapshot
        await handle.close()
    true(compacted > 0, "nothing was compacted: this proves nothing")
    return f"{sum(writer.tried for writer in writers)} values overwritten, 6 kills"


class Overwriter:
    """Puts values under one key until its broker is gone."""

    def __init__(self, stage, cache: Cache, key: str):
        self.key, self.tried, self.done, self.over = key, 0, 0, False
        self._stage, self._cache = stage, cache

    async def write(self) -> None:
        """Put until a put fails, as the one does that is under way when the broker is killed, or until it is over."""
        felix, self.over = self._stage.felix, False
        try:
            while not self.over:
                self.tried += 1
                await self._cache.put(self.key, b"%08d" % self.tried + b"x" * HOT)
                self.done = self.tried
        except (felix.ConnectionError, felix.OutcomeUnknownError, felix.ShardUnavailableError):
            return

    def check(self, entry: tuple | None) -> None:
        """The newest value is the last that was acknowledged, or the one whose outcome is unknown."""
        got = 0 if entry is None else int(entry[0][:8])
        true(self.done <= got <= self.tried, f"{self.key} holds value {got}, of {self.tried}, {self.done} acknowledged")


@scenario(own_broker=True)
async def counters_survive_restarts(stage, client):
    """Sums are there after a kill and after a stop; never written stays never written."""
    daemon, apart = stage.apart()
    user, name = await apart.connect(), apart.cache(4)
    cache, sums = Cache(apart, user, name), Counters(apart, user, name)
    keys = [key.decode() for shard in range(4) for key in placement.keys_for(shard, 4, 10)]
    totals = dict.fromkeys(keys, 0)
    for restart, end in enumerate((daemon.kill, daemon.stop, daemon.kill)):
        for number, key in enumerate(keys):
            totals[key] += number - 20 * restart
            equal(await sums.add(key, number - 20 * restart), totals[key], f"counter {key}")
        await apart.surface.aside(end)
        await apart.surface.aside(daemon.start)
        await answering(apart, cache)
        for key, total in totals.items():
            equal(await sums.get(key), total, f"counter {key} after restart {restart}")
        equal(await sums.get("never"), None, "a counter that was never written")
    return f"{len(keys)} counters, 3 restarts"


@scenario(own_broker=True)
async def memory_forgets(stage, client):
    """A cache in memory is there after a restart, without its entries; the one in a log beside it has them."""
    daemon, apart = stage.apart()
    user = await apart.connect()
    memory, log = (Cache(apart, user, apart.cache(4, in_memory=each)) for each in (True, False))
    for cache in (memory, log):
        for number in range(40):
            await cache.put(f"k{number}", b"v")
    await apart.surface.aside(daemon.kill)
    await apart.surface.aside(daemon.start)
    for cache in (memory, log):
        await answering(apart, cache)
    for number in range(40):
        equal(await memory.get(f"k{number}"), None, f"k{number} in memory")
        equal(await log.get(f"k{number}"), b"v", f"k{number} in a log")
    await memory.put("k0", b"again")
    equal(await memory.get("k0"), b"again", "a put after a restart")
