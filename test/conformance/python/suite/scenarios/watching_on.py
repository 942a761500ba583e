"""Cache watches while something happens: writers, ends of lives, compaction, a reader that does not read."""

from __future__ import annotations

import time

from suite.checks import equal, true
from suite.following import Follower, expect_quiet, next_change
from suite.runner import scenario
from suite.scenarios.caching import Cache
from suite.scenarios.watching import expect_change, facts, watcher

EXPIRES_WITHIN = 5.0  # seconds from the end of a life until watches hear of it; the broker looks four times a second
COMPACTED_WITHIN = 40.0  # seconds until a log that is mostly overwritten values has been compacted
LARGE = 64 * 1024  # bytes of a value that fills segments
UNREAD = 90  # values of LARGE from each of 16 writers that nobody reads: more than the windows of this client take


@scenario()
async def watches_that_join_writers(stage, client):
    """Watches that begin while all keys are written: after the current value of a key comes the next, and none is left out.

    A key that is written at the very moment may come as that change alone.
    """
    name, turns = stage.cache(1), 40
    cache, watch = Cache(stage, client, name), watcher(stage, client, name)
    keys = [f"w{number}/{key}" for number in range(4) for key in range(8)]

    def writer(number):
        async def write():
            for turn in range(1, turns + 1):
                for key in range(8):
                    await cache.put(f"w{number}/{key}", b"%d" % turn + b"x" * (key * 700))

        return write

    def joiner(number):
        async def join():
            await stage.surface.sleep(number * 0.03)
            prefix = ("", "w1/", "w3/7")[number % 3]
            handle = await watch(prefix=prefix, retained=True)
            seen = {}
            for _ in range(handle.retained_count):
                change = await next_change(handle, f"current values of {prefix!r}")
                true(change.key not in seen, f"two current values of {change.key}")
                seen[change.key] = int(change.value.rstrip(b"x"))
            mine = [key for key in keys if key.startswith(prefix)]
            while any(seen.get(key, 0) < turns for key in mine):
                change = await next_change(handle, f"a change of {prefix!r}, at {seen}")
                turn = int(change.value.rstrip(b"x"))
                equal(turn, seen.get(change.key, turn - 1) + 1, f"the next value of {change.key}")
                seen[change.key] = turn
            await handle.close()

        return join

    await stage.surface.gather(*(writer(number) for number in range(4)), *(joiner(number) for number in range(24)))
    return "24 watches"


@scenario()
async def watch_the_end_of_lives(stage, client):
    """An entry whose time is up is a miss at once and a removal for watches soon after, once; a refreshed one lives on."""
    name = stage.cache(1)
    cache, watch = Cache(stage, client, name), watcher(stage, client, name)
    handle = await watch(prefix="")
    began = time.time()
    await cache.put("kept", b"k", ttl=0.4)
    await cache.put("kept", b"K", ttl=300.0)
    for number in range(50):
        await cache.put(f"short/{number}", b"s", ttl=0.4)
    ended = time.time()
    for number in range(52):
        change = await next_change(handle, f"put {number}")
        life = 300.0 if number == 1 else 0.4
        true(
            (began + life) * 1000 - 1 <= change.expires_at_millis <= (ended + life) * 1000 + 1,
            f"{change!r} ends at {change.expires_at_millis}, put with {life} s between {began} and {ended}",
        )
    gone = {}
    while len(gone) < 50:
        change = await next_change(handle, f"end {len(gone)}")
        late = time.time() - (ended + 0.4)
        true(change.value is None and change.key.startswith("short/"), f"{change!r}, want the end of a short life")
        true(change.key not in gone, f"{change.key} ended twice")
        true(late < EXPIRES_WITHIN, f"{change.key} was announced {late:.1f} s late")
        equal(await cache.get(change.key), None, f"get {change.key} after its end")
        gone[change.key] = change.offset
    equal(await cache.get("kept"), b"K", "an entry that was put again with a longer life")
    await expect_quiet(handle, "ends of lives")
    return f"the last end came {late:.2f} s after the last life"


@scenario(seconds=120.0)
async def watch_from_what_was_compacted(stage, client):
    """From an offset that compaction removed: what is there, each at the offset of its put, then what follows."""
    name, felix = stage.cache(1), stage.felix
    cache, watch = Cache(stage, client, name), watcher(stage, client, name)
    live = Follower(stage, client, name, felix.CacheWatchFilter.prefix(""), "the live watch")
    await live.begin()
    start, kept = live.first, {}
    for number in range(20):
        await cache.put(f"kept/{number}", b"%d" % number * (number % 3), **({"ttl": 600.0} if number % 2 else {}))
    await cache.put("gone", b"g")
    await cache.delete("gone")
    deadline, written = time.monotonic() + COMPACTED_WITHIN, 0
    while True:
        for _ in range(16):
            written += 1
            await cache.put("hot", b"%08d" % written + b"x" * LARGE)
        await live.until(lambda key, change: key == "hot" and change.value.startswith(b"%08d" % written))
        handle = await watch(prefix="", start=start)
        if handle.resnapshot:
            break
        await handle.close()
        true(time.monotonic() < deadline, f"{written} values of {LARGE} bytes under one key, and all are still there")
        await stage.surface.sleep(0.3)
    for key, change in live.changes:
        kept[key] = (key, change.value, change.offset, change.expires_at_millis)
    del kept["gone"]
    want = sorted(kept.values(), key=lambda each: each[2])
    got = [await next_change(handle, f"value {number} of {len(want)}") for number in range(len(want))]
    equal([facts(each) for each in got], want, "what is there")
    await cache.put("after", b"a")
    await expect_change(handle, "after", b"a", handle.resume_offset - 1, "the change after it")
    await live.until(lambda key, change: key == "after")
    equal(len(live.changes), 20 + 2 + written + 1, "changes that the live watch saw: compaction is none")
    return f"{written} values written"


@scenario(own_broker=True)
async def watch_that_is_too_slow(stage, client):
    """A watch that nobody reads, until all windows on its way are full, is told where to go on; and nothing is lost."""
    _, apart = stage.apart({"FELIX_SUBSCRIBER_QUEUE_CAPACITY": "1", "FELIX_SUBSCRIBER_QUEUE_CAPACITY_MAX": "1"})
    writes, reads = await apart.connect(), await apart.connect()
    name = apart.cache(1)
    cache = Cache(apart, writes, name)
    follower = Follower(apart, reads, name, apart.felix.CacheWatchFilter.prefix(""), "a slow watch")
    await follower.begin()

    def writer(number):
        async def write():
            for turn in range(UNREAD):
                await cache.put(f"{number}/{turn}", bytes([number, turn]) * (LARGE // 2))

        return write

    await apart.surface.gather(*(writer(number) for number in range(16)))
    await cache.put("end", b"")
    await follower.until(lambda key, change: key == "end")
    true(follower.lags > 0, f"{16 * UNREAD} values of {LARGE} bytes, none of them read, and no word of it")
    turns = [0] * 16
    for key, change in follower.changes[:-1]:
        number = int(key.split("/")[0])
        equal((key, change.value[:2]), (f"{number}/{turns[number]}", bytes([number, turns[number]])), "the next change")
        equal(len(change.value), LARGE, f"bytes of {key}")
        turns[number] += 1
    equal(turns, [UNREAD] * 16, "changes of each writer")
    return f"told {follower.lags} times where to go on"
